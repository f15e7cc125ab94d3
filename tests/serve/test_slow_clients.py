"""Clients that send slowly hold up no other: a request takes a turn once its body has arrived, within its deadline."""

import asyncio
from pathlib import Path
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from neardup.config import Serve
from neardup.http.problems import SLOW, Refused
from neardup.serve.service import BUSY, LONG_SLOTS, SHORT_SLOTS, Deadline, Service

from tests.support.http_service import configuration, http_service, never_open, problem_of
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

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
