"""Laws: every piece of work is done once, off the event loop's thread; each gets its own answer or error; no more are
done at once than the crew may be.
"""

import asyncio
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.coalesced import Coalesced
from daemon.crew import Crew


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=40), st.integers(1, 5))
async def test_each_work_gets_its_own_answer_or_error(items: list[int], most: int) -> None:
    working, peak = Counter[str](), 0
    lock = threading.Lock()

    def inverse(item: int) -> float:
        nonlocal peak
        with lock:
            working["now"] += 1
            peak = max(peak, working["now"])
        try:
            assert threading.current_thread() is not threading.main_thread(), "on the event loop's thread"
            return 1 / item
        finally:
            with lock:
                working["now"] -= 1

    crew = Crew(most)
    works = [crew(lambda item=item: inverse(item)) for item in items]  # type: ignore[misc]
    answers = await asyncio.gather(*works, return_exceptions=True)
    crew.close()
    assert [type(answer) if isinstance(answer, Exception) else answer for answer in answers] == [
        1 / item if item else ZeroDivisionError for item in items
    ]
    assert peak <= most
    assert crew.concurrency.in_flight == 0


async def test_works_are_done_side_by_side() -> None:
    crew = Crew(4)
    met = threading.Barrier(4)  # breaks, unless four threads come to it
    assert sorted(await asyncio.gather(*(crew(lambda: met.wait(5)) for _ in range(4)))) == [0, 1, 2, 3]
    crew.close()


async def test_the_threads_go_when_it_is_closed_and_come_again() -> None:
    before = set(threading.enumerate())
    crew = Crew(3)
    for _ in range(2):
        await asyncio.gather(*(crew(threading.get_ident) for _ in range(9)))
        mine = set(threading.enumerate()) - before
        assert 1 <= len(mine) <= 3
        crew.close()
        for thread in mine:
            thread.join(5)
        assert not any(thread.is_alive() for thread in mine)


async def test_work_whose_caller_was_cancelled_harms_no_other() -> None:
    crew, begin = Crew(2), threading.Event()
    tasks = [asyncio.create_task(crew(begin.wait)) for _ in range(6)]
    await asyncio.sleep(0)
    for n in (0, 5):
        tasks[n].cancel()
    begin.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[1:5] == [True] * 4
    crew.close()


async def test_an_error_leaves_the_thread_at_work() -> None:
    crew = Crew(1)
    with pytest.raises(ZeroDivisionError):
        await crew(lambda: 1 // 0)
    assert await crew(lambda: 2) == 2
    crew.close()


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
async def test_keys_that_come_together_are_asked_for_together(keys: list[int]) -> None:
    asked: list[list[int]] = []

    async def ask(wanted: list[int]) -> dict[int, int]:
        asked.append(list(wanted))
        await asyncio.sleep(0)
        return {key: key * key for key in wanted if key % 2}

    coalesced: Coalesced[int, int] = Coalesced(ask)  # type: ignore[arg-type]
    assert await asyncio.gather(*map(coalesced, keys)) == [key * key if key % 2 else None for key in keys]
    assert asked == [keys], "in one question"
    assert await coalesced(3) == 9, "and in another one later"


async def test_a_question_that_fails_fails_those_who_asked_and_nobody_after() -> None:
    fine: list[str] = []

    async def ask(_: object) -> dict[int, str]:
        if not fine:
            raise ZeroDivisionError
        return {1: fine[0]}

    coalesced: Coalesced[int, str] = Coalesced(ask)
    failed = await asyncio.gather(coalesced(1), coalesced(2), return_exceptions=True)
    assert [type(error) for error in failed] == [ZeroDivisionError, ZeroDivisionError]
    fine.append("one")
    assert await coalesced(1) == "one"
