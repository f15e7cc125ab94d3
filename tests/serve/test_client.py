"""Laws of the clients: both send the same, repeat what may succeed, as often as they may, and say when to fail open."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import neardup
import pytest
import stamina
from aiohttp import web
from aiohttp.test_utils import TestServer
from neardup.serve import client
from neardup.serve.messages import CheckAnswer
from neardup.serve.operations import OPERATIONS
from pydantic import ValidationError

from tests.support.servers import free_port

ANSWER = CheckAnswer(
    story_id=7,
    verdict="clear",
    similarity=0.0,
    matches=[],
    words=12,
    fingerprint_version="1",
    estimated=False,
    reasons=[],
    took_ms=1.0,
)
BUSY = {"type": "urn:neardup:problem:busy", "title": "Too many", "status": 429, "detail": "64 wait", "fail_open": True}
INVALID = {"type": "urn:neardup:problem:invalid", "title": "Not valid", "status": 422, "detail": "text: missing"}
OK = 200, ANSWER.model_dump()
Check = Callable[[str], Awaitable[CheckAnswer]]


@asynccontextmanager
async def scripted(*script: tuple[int, Any]) -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A server that gives these answers in turn; yields its URL and the requests that came."""
    answers, received = iter(script), list[web.Request]()

    async def answer(request: web.Request) -> web.Response:
        received.append(request)
        await request.read()
        status, body = next(answers)
        headers = {"Retry-After": "0"} if status in (429, 503) else {}
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")), received


async def by_client(url: str) -> CheckAnswer:
    def check() -> CheckAnswer:
        with neardup.Client(url, "secret") as client:
            return client.check(story_id=7, language="hi", text="एक कहानी")

    return await asyncio.to_thread(check)


async def by_async_client(url: str) -> CheckAnswer:
    async with neardup.AsyncClient(url, "secret") as client:
        return await client.check(story_id=7, language="hi", text="एक कहानी")


each_client = pytest.mark.parametrize("check", [by_client, by_async_client])


@each_client
async def test_it_sends_the_request_and_returns_the_answer(check: Check) -> None:
    async with scripted(OK) as (url, received):
        assert await check(url) == ANSWER
        [request] = received
        assert (request.method, request.path) == ("POST", "/v1/check")
        assert request.headers["Authorization"] == "Bearer secret"
        assert await request.json() == {"id": 7, "language": "hi", "text": "एक कहानी"}


@each_client
async def test_it_sends_again_while_the_service_is_busy(check: Check) -> None:
    async with scripted((429, BUSY), (503, BUSY | {"status": 503}), OK) as (url, received):
        assert await check(url) == ANSWER
        assert len(received) == 3


@each_client
async def test_it_gives_up_and_says_to_fail_open(check: Check) -> None:
    async with scripted(*[(429, BUSY)] * 4) as (url, received):
        with pytest.raises(neardup.ServiceError, match="64 wait") as error:
            await check(url)
        assert error.value.fail_open
        assert len(received) == 4


@each_client
async def test_a_refusal_is_final(check: Check) -> None:
    async with scripted((422, INVALID)) as (url, received):
        with pytest.raises(neardup.ServiceError, match="text: missing") as error:
            await check(url)
        assert not error.value.fail_open
        assert error.value.problem is not None
        assert error.value.problem.type == "urn:neardup:problem:invalid"
        assert len(received) == 1


@each_client
async def test_a_service_that_is_not_there_fails_open(check: Check) -> None:
    with stamina.set_testing(True, attempts=2, cap=True):
        with pytest.raises(neardup.ServiceError, match="does not answer") as error:
            await check(f"http://127.0.0.1:{free_port()}")
        assert error.value.fail_open
        async with scripted(*[(502, "<html>Bad gateway")] * 4) as (url, _):
            with pytest.raises(neardup.ServiceError, match="no answer of neardup") as error:
                await check(url)
            assert error.value.fail_open


def test_every_call_has_its_method_and_path() -> None:
    story: client.Story = {"language": "hi", "text": "एक"}
    made: list[client.Call[Any]] = [
        client.check_call(None, story),
        client.batch_call([story]),
        client.compare_call({"story_id": 1}, {"text": "एक"}),
        client.put_call(1, "a/1.html", story),
        client.story_call(1),
        client.matches_call(1),
        client.forget_call(1),
    ]
    assert {(call.method, call.path.replace("/1", "/{id}"), call.answer) for call in made} == {
        (operation.method, operation.path, operation.answer) for operation in OPERATIONS
    }
    assert json.loads(made[3].body or b"") == {"language": "hi", "text": "एक", "path": "a/1.html", "restore": False}
    with pytest.raises(ValidationError, match="give either"):
        client.check_call(None, {"language": "hi"})
