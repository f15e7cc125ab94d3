"""Laws of failures: each becomes a problem with its own status, and what may quote a story is in no answer; nor is a
version of the programs that make it, whoever asks and however.
"""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from neardup.errors import Conflict, Fatal, NeardupError, Transient
from neardup.http.requests import CONTENT_TYPE, FAILED, INVALID, ProblemType, Refused, WrongMember, answer_or_problem
from neardup.http.server import serve_metrics

from tests.support.servers import free_port

TAKEN = ProblemType("taken", 409, "It is taken")
PROBLEM_OF: dict[type[NeardupError], ProblemType] = {Conflict: TAKEN, NeardupError: FAILED}
FAILURES = [
    (Refused(INVALID, "wrong", errors=(WrongMember("a", "b"),)), 422, "invalid"),
    (web.HTTPNotFound(), 404, "not-found"),
    (web.HTTPMethodNotAllowed("PUT", ["GET"]), 405, "method-not-allowed"),
    (web.HTTPRequestEntityTooLarge(1, 2), 413, "too-large"),
    (web.HTTPBadRequest(reason="an invalid filter"), 422, "invalid"),
    (Transient("locked", "ledger"), 503, "unavailable"),
    (Conflict("decided meanwhile"), 409, "taken"),
    (Fatal("no ledger"), 500, "failed"),
    (ValueError("कहानी"), 500, "failed"),
]


@pytest.mark.parametrize(("failure", "status", "name"), FAILURES, ids=lambda value: type(value).__name__)
async def test_every_failure_is_a_problem(failure: Exception, status: int, name: str) -> None:
    async def fail(_: web.Request) -> web.StreamResponse:
        raise failure

    request = make_mocked_request("GET", "/")
    answer = await answer_or_problem(request, fail, lambda refused: json.dumps(refused.members), PROBLEM_OF)
    assert isinstance(answer, web.Response)
    assert (answer.status, answer.content_type) == (status, CONTENT_TYPE)
    body = json.loads(answer.text or "")
    assert (body["type"], body["status"]) == (f"urn:neardup:problem:{name}", status)
    assert "कहानी" not in body["detail"], "the message of an unexpected error may quote a story"
    assert ("Allow" in answer.headers) == (status == 405)
    assert ("Retry-After" in answer.headers) == (status == 503)


async def test_no_answer_names_a_version(capfd: pytest.CaptureFixture[str]) -> None:
    listen = f"127.0.0.1:{free_port()}"
    async with serve_metrics(listen, "run", lambda: {"healthy": True}):
        for sent in (b"GET /healthz HTTP/1.0", b"GET /nothing HTTP/1.0", b"no HTTP", b"GET / HTTP/1.1\r\nX: \0"):
            reader, writer = await asyncio.open_connection(*listen.split(":"))
            writer.write(sent + b"\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(10_000), 30)
            writer.close()
            assert b"HTTP/1." in answer
            assert b"Server: neardup\r\n" in answer and b"aiohttp" not in answer, answer
    assert "Traceback" not in capfd.readouterr().err
