"""Laws of the clients: both send the same, repeat what may succeed within a deadline, and say when to fail open."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, assert_type

import neardup
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.http.server import LONGEST_LINE
from neardup.serve.app import OPERATIONS
from neardup.serve.messages import (
    CheckAnswer,
    CompareAnswer,
    Draft,
    Forgotten,
    MatchesAnswer,
    Problem,
    ProofAnswer,
    Stored,
    parse_story_id,
)
from neardup.serve.operations import parse_author
from neardup.serve.rights_messages import AuthorCopies, Complaint
from yarl import URL

from tests.support.sampling import count_examples
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
ADDRESS = "http://127.0.0.1:8766"
NAMED = r"(?s)^.+: |give either|lone surrogates|does not answer"
Check = Callable[..., Coroutine[Any, Any, CheckAnswer]]


@asynccontextmanager
async def scripted(*script: tuple[int, Any], retry_after: str = "0") -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A server that gives these answers in turn; yields its ADDRESS and the requests that came."""
    answers, received = iter(script), list[web.Request]()

    async def answer(request: web.Request) -> web.Response:
        received.append(request)
        await request.read()
        status, body = next(answers)
        headers = {"Retry-After": retry_after} if status in (429, 503) else {}
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    await server.start_server(max_line_size=LONGEST_LINE)
    async with server:
        yield str(server.make_url("")), received


async def by_client(url: str, **options: Any) -> CheckAnswer:
    def check() -> CheckAnswer:
        with neardup.Client(url, "secret", **options) as client:
            return client.check(story_id=7, language="hi", text="एक कहानी", author_id=17)

    return await asyncio.to_thread(check)


async def by_async_client(url: str, **options: Any) -> CheckAnswer:
    async with neardup.AsyncClient(url, "secret", **options) as client:
        return await client.check(story_id=7, language="hi", text="एक कहानी", author_id=17)


each_client = pytest.mark.parametrize("check", [by_client, by_async_client])


@each_client
async def test_it_sends_the_request_and_returns_the_answer(check: Check) -> None:
    async with scripted(OK) as (url, received):
        assert await check(url) == ANSWER
        [request] = received
        assert (request.method, request.path) == ("POST", "/v1/check")
        assert request.headers["Authorization"] == "Bearer secret"
        assert await request.json() == {"id": 7, "language": "hi", "text": "एक कहानी", "author_id": "17"}


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
async def test_a_service_that_is_not_there_fails_open_and_the_log_is_that_of_logging(
    check: Check, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(neardup.ServiceError, match="does not answer") as error:
        await check(f"http://127.0.0.1:{free_port()}", attempts=2)
    assert error.value.fail_open
    assert [record.name for record in caplog.records] == ["neardup.client"]
    async with scripted((404, "<html>Nothing"), (502, "<html>Bad gateway"), OK) as (url, received):
        with pytest.raises(neardup.ServiceError, match="no answer of neardup") as error:
            await check(url)
        assert error.value.fail_open
        assert len(received) == 1, "an answer that will not change was asked for again"
        assert await check(url) == ANSWER
    assert not capfd.readouterr().out, "a program's own output has lines of the client in it"


@each_client
async def test_all_attempts_together_keep_the_deadline(check: Check) -> None:
    """A wait that would pass it is not begun, and a server that falls silent is not waited for."""
    for retry_after in ("60", "Fri, 31 Dec 2999 23:59:59 GMT"):
        async with scripted((429, BUSY), retry_after=retry_after) as (url, received):
            with pytest.raises(neardup.ServiceError, match="64 wait"):
                await check(url)
            assert len(received) == 1
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(neardup.ServiceError, match="does not answer: TimeoutError"),
    ):
        await check(f"http://127.0.0.1:{silent.getsockname()[1]}", deadline=0.05)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_client_works_on_in_a_forked_process() -> None:
    async with scripted(OK, OK) as (url, received):

        def check_in_both() -> int:
            with neardup.Client(url) as client:
                client.check(language="hi", text="एक")
                pid = os.fork()
                if pid == 0:
                    os._exit(0 if client.check(language="hi", text="दो") == ANSWER else 1)
                return os.waitpid(pid, 0)[1]

        assert await asyncio.to_thread(check_in_both) == 0
        assert len(received) == 2


async def test_every_operation_has_its_call_in_both_clients() -> None:
    """The types are those that a program sees under mypy --strict; an id that reads as a path stays an id."""
    story: Any = {"language": "hi", "text": "एक", "author_id": None}
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.check(**story),
        lambda client: client.check_batch(story for _ in range(2)),
        lambda client: client.compare({"story_id": 1}, {"text": "एक"}),
        lambda client: client.put(1, path="a/1.html", **story),
        lambda client: client.story("1"),
        lambda client: client.matches(1),
        lambda client: client.proof(1),
        lambda client: client.forget(1),
        lambda client: client.put_draft(1, **story | {"author_id": 2}),
        lambda client: client.draft(1),
        lambda client: client.check_draft(1),
        lambda client: client.discard_draft(1),
        lambda client: client.complain(story_id=1, complainant="Meera", contact="m@example.com", statement="x"),
        lambda client: client.complaints(closed=True, limit=7),
        lambda client: client.complaint(2),
        lambda client: client.answer_complaint(2, by="author", text="x"),
        lambda client: client.forget_complainant(2),
        lambda client: client.enter_permission(granted_by="asha"),
        lambda client: client.permissions(author_id=7),
        lambda client: client.permission(2),
        lambda client: client.revoke_permission(2),
        lambda client: client.author_token(3),
        lambda client: client.author_copies("3", since="2026-01-01T00:00:00+05:30"),
        lambda client: client.new_copies(since="2026-01-01T00:00:00Z"),
    ]

    def by_sync(url: str, call: Callable[[Any], Any]) -> None:
        with neardup.Client(url) as client:
            call(client)

    def sent(requests: list[web.Request]) -> list[tuple[str, str]]:
        paths = (request.raw_path.partition("?")[0].replace("/1", "/{id}") for request in requests)
        named = (path.replace("/2", "/{number}").replace("/3", "/{author}") for path in paths)
        return list(zip((request.method for request in requests), named, strict=True))

    async with scripted(*[(422, INVALID)] * 4 * len(calls)) as (url, received):
        for call in calls:
            with pytest.raises(neardup.ServiceError, match="text: missing"):
                await asyncio.to_thread(by_sync, url, call)
        by_sync_client, received[:] = sent(received), []
        async with neardup.AsyncClient(url) as client:
            for call in calls:
                with pytest.raises(neardup.ServiceError, match="text: missing"):
                    await call(client)
            assert sent(received) == by_sync_client
            assert set(by_sync_client) == {(operation.method, operation.path) for operation in OPERATIONS}
            for listed in (".", "..", "../a", "a/b", "?", "#", "%2F", "%2e%2e", "कथा ", "کہانی", "क" * 1_000):
                for call_by, collection, read_id in (
                    (client.story, "stories", parse_story_id),
                    (client.author_token, "authors", parse_author),
                ):
                    with pytest.raises(neardup.ServiceError, match="text: missing"):
                        await call_by(listed)
                    path = received[-1].match_info["path"].removeprefix(f"v1/{collection}/").removesuffix("/token")
                    assert read_id(path) == read_id(listed), f"{received[-1].raw_path} names another"
                    sent_path = received[-1].raw_path
                    assert URL(f"http://proxy{sent_path}").raw_path.count("/") == sent_path.count("/"), (
                        f"{sent_path} goes up a folder"
                    )


def test_the_results_are_typed() -> None:
    def use(client: neardup.Client) -> None:
        assert_type(client.check(story_id=1, language="hi", text="एक", author_id=2), CheckAnswer)
        assert_type(client.check_batch([{"language": "hi", "text": "एक"}]), list[CheckAnswer | Problem])
        assert_type(client.compare({"story_id": 1}, {"html": "<p>"}), CompareAnswer)
        assert_type(client.put("a", language="hi", text="एक"), CheckAnswer)
        assert_type(client.story(1), Stored)
        assert_type(client.matches(1), MatchesAnswer)
        assert_type(client.proof(1), ProofAnswer)
        assert_type(client.forget(1), Forgotten)
        assert_type(client.put_draft(1, language="hi", text="एक", author_id=2), CheckAnswer)
        assert_type(client.draft(1), Draft)
        assert_type(client.complaint(1), Complaint)
        assert_type(client.author_copies(1), AuthorCopies)

    async def use_async(client: neardup.AsyncClient) -> None:
        assert_type(await client.check(story_id=1, language="hi", text="एक", author_id=2), CheckAnswer)
        assert_type(await client.put("a", language="hi", text="एक"), CheckAnswer)
        assert_type(await client.forget(1), Forgotten)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=2)
wrong = anything | st.lists(anything, max_size=2) | st.dictionaries(st.text(max_size=3), anything, max_size=2)


@settings(max_examples=count_examples(40))
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("story_id", "language", "text", "author_id", "title"), wrong)))
def test_a_bad_argument_is_named_and_nothing_else_is_raised(arguments: dict[str, Any]) -> None:
    """Each argument may be anything: a call cannot be sent, or is sent to a server that is not there."""
    story = {"language": "hi", "text": "एक"} | arguments
    story_id = arguments.get("story_id")
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.check(**story),
        lambda client: client.matches(story_id),
        lambda client: client.check_batch([story, story_id]),
        lambda client: client.check_batch(story_id),
        lambda client: client.compare(story_id, arguments),
    ]

    async def fail_all() -> None:
        async with neardup.AsyncClient("http://127.0.0.1:1", attempts=1) as client:
            for call in calls:
                with pytest.raises((neardup.InvalidArgument, neardup.ServiceError), match=NAMED):
                    await call(client)

    asyncio.run(fail_all())


def test_a_client_that_cannot_work_is_refused() -> None:
    for url in ("", "127.0.0.1:8766", "ftp://x", "http://", "http://x:99999", "http://x/?y", None):
        with pytest.raises(neardup.InvalidArgument, match="url: "):
            neardup.Client(url)  # type: ignore[arg-type]
    for token in ("", "a\nb", "कुंजी"):
        with pytest.raises(neardup.InvalidArgument, match="token: ") as error:
            neardup.Client(ADDRESS, token)
        assert not token or token not in str(error.value)
    make: Callable[..., neardup.Client] = partial(neardup.Client, ADDRESS)
    for name in ("timeout", "deadline", "attempts"):
        with pytest.raises(neardup.InvalidArgument, match=f"{name}: "):
            make(**{name: 0})
