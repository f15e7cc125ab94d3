"""Laws of a lane: it works on so many requests at a time, lets so many wait, and none longer than its deadline.

Clients that send slowly hold up no other: a request takes a turn once its body has arrived.
"""

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Serve
from neardup.http.requests import SLOW, UNAVAILABLE, Refused
from neardup.serve import service
from neardup.serve.service import BUSY, LONG_SLOTS, SHORT_SLOTS, Deadline, Lane, Service

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.service import configuration, http_service, never_open, problem_of

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


HEAD = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LENGTHS = ["Content-Length: 900"] * SHORT_SLOTS + ["Transfer-Encoding: chunked"] * LONG_SLOTS


async def test_others_are_answered_while_bodies_arrive(tmp_path: Path) -> None:
    config = configuration(tmp_path, deadline_seconds=60)
    story = {"language": SAMPLED[0], "text": STORIES[SAMPLED[0]][0]}
    async with http_service(config) as (client, _):
        slow = []
        for length in LENGTHS:
            reader, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(f"{HEAD}{length}\r\n\r\n".encode())
            await writer.drain()
            slow.append((reader, writer))
        async with client.post("/v1/check", json=story) as short:
            assert short.status == 200, "slow clients have all turns"
        async with client.post("/v1/compare", json={"a": {"text": story["text"]}, "b": {"story_id": 1}}) as long:
            assert long.status == 404, "a slow client has the turn of long requests"
        assert all(not reader._buffer for reader, _ in slow)  # type: ignore[attr-defined]
        for _, writer in slow:
            writer.close()


async def test_a_body_that_is_not_encoded_as_it_says_is_malformed(tmp_path: Path) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    async with http_service(configuration(tmp_path)) as (client, _):
        status, problem = await problem_of(client, "POST", "/v1/check", data=b"no gzip", headers=headers)
    assert (status, problem["type"]) == (400, "urn:neardup:problem:malformed")


async def test_a_body_that_is_late_or_one_too_many_is_refused() -> None:
    service = Service(Serve(queue=1), lambda: never_open(configuration(Path())), None, asyncio.Event())
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.transport = Mock()
    request = make_mocked_request("POST", "/", payload=StreamReader(protocol, 2**16, loop=loop))
    arriving = asyncio.create_task(service.receive(request, Deadline(0.05)))
    await asyncio.sleep(0)
    with pytest.raises(Refused) as refused:
        await service.receive(request, Deadline(60))
    assert refused.value.problem is BUSY
    with pytest.raises(Refused) as refused:
        await arriving
    assert refused.value.problem is SLOW
