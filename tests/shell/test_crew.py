"""Laws: every item is worked once, off the event loop's thread; each gets its own answer or error; no more threads work
than were given, and none takes more than its handful.
"""

import asyncio
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.offload import Offload


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=40), st.integers(1, 3), st.integers(1, 7))
async def test_each_item_gets_its_own_answer_or_error(items: list[int], threads: int, most: int) -> None:
    working, peak = Counter[str](), 0
    lock = threading.Lock()

    def inverse(item: int) -> float:
        nonlocal peak
        with lock:
            working["now"] += 1
            peak = max(peak, working["now"])
        assert threading.current_thread() is not threading.main_thread(), "on the event loop's thread"
        try:
            return 1 / item
        finally:
            with lock:
                working["now"] -= 1

    offload = Offload(inverse, threads=threads, most=most)
    answers = await asyncio.gather(*map(offload, items), return_exceptions=True)
    offload.close()
    assert [type(answer) if isinstance(answer, Exception) else answer for answer in answers] == [
        1 / item if item else ZeroDivisionError for item in items
    ]
    assert peak <= threads
    assert offload.waiting == 0


async def test_what_waits_is_taken_by_the_handful_while_a_thread_works() -> None:
    begin, taken = threading.Event(), []

    def note(item: int) -> int:
        begin.wait()
        taken.append((threading.get_ident(), item))
        return item

    offload = Offload(note, threads=1, most=3)
    tasks = [asyncio.create_task(offload(n)) for n in range(8)]
    await asyncio.sleep(0)  # each has come
    assert offload.waiting == 7
    begin.set()
    assert await asyncio.gather(*tasks) == list(range(8))
    assert [item for _, item in taken] == list(range(8)), "in the order of their coming"
    offload.close()


async def test_an_item_whose_caller_was_cancelled_harms_no_other() -> None:
    begin = threading.Event()

    def after(item: int) -> int:
        begin.wait()
        return item

    offload = Offload(after, threads=1, most=4)
    tasks = [asyncio.create_task(offload(n)) for n in range(6)]
    await asyncio.sleep(0)  # each has come
    assert offload.waiting == 5
    tasks[0].cancel()
    tasks[4].cancel()
    begin.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [answer for n, answer in enumerate(answers) if n not in (0, 4)] == [1, 2, 3, 5]
    offload.close()


async def test_an_error_is_raised_where_the_item_is_awaited() -> None:
    offload: Offload[int, float] = Offload(lambda item: 1 / item, threads=1, most=2)
    with pytest.raises(ZeroDivisionError):
        await offload(0)
    assert await offload(2) == 0.5, "and the thread works on"
    offload.close()
