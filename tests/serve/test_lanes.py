"""Laws of a lane: it works on so many requests at a time, lets so many wait, and none longer than its deadline."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.http.problems import UNAVAILABLE, Refused
from neardup.serve import service
from neardup.serve.service import BUSY, Deadline, Lane

LONG = 3600.0


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 12))
async def test_slots_and_queue_are_never_exceeded(slots: int, queue: int, requests: int) -> None:
    lane, gate = Lane("test", slots, queue), asyncio.Event()
    at_work, most_at_work = 0, 0

    async def work() -> str:
        nonlocal at_work, most_at_work
        at_work += 1
        most_at_work = max(most_at_work, at_work)
        await gate.wait()
        at_work -= 1
        return "done"

    tasks = [asyncio.create_task(lane.carry_out(work(), Deadline(LONG))) for _ in range(requests)]
    for _ in range(3 * requests):
        await asyncio.sleep(0)
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [result.problem for result in results if isinstance(result, Refused)]
    assert most_at_work == min(slots, requests)
    assert results.count("done") == min(slots + queue, requests)
    assert refused == [BUSY] * max(requests - slots - queue, 0)


async def test_a_request_without_a_turn_by_its_deadline_fails_open() -> None:
    lane, gate = Lane("test", 1, 5), asyncio.Event()
    first = asyncio.create_task(lane.carry_out(gate.wait(), Deadline(LONG)))
    await asyncio.sleep(0)
    with pytest.raises(Refused) as refused:
        await lane.carry_out(gate.wait(), Deadline(0))
    assert refused.value.problem is UNAVAILABLE
    gate.set()
    assert await first


async def test_late_work_is_answered_for_and_keeps_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads cannot be stopped, so another request must not begin beside them."""
    monkeypatch.setattr(service, "LATE_SECONDS", 0)
    lane, gate, ended = Lane("test", 1, 5), asyncio.Event(), []

    async def work() -> None:
        await gate.wait()
        ended.append("late")

    with pytest.raises(Refused, match="takes longer"):
        await lane.carry_out(work(), Deadline(0))
    with pytest.raises(Refused, match="had no turn"):
        await lane.carry_out(work(), Deadline(0))
    gate.set()
    await lane.drain()
    assert ended == ["late"], "the late work was cancelled, or not waited for"
    await lane.carry_out(work(), Deadline(LONG))


async def test_a_failure_is_raised_and_frees_the_slot() -> None:
    lane = Lane("test", 1, 1)

    async def fail() -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await lane.carry_out(fail(), Deadline(LONG))
