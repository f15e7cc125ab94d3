"""Laws of what a request brings: a body is its model, or a refusal that names the wrong members and quotes nothing; a
token is found whoever else has one.

Laws of failures: each becomes a problem by RFC 9457 with its own status, also those that the framework makes; what may
quote a story is in no answer; nor is a version of the programs that make it, whoever asks and however.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from neardup.app import open_desk
from neardup.config import Config, Content, Ledger, Source
from neardup.config.sections import Review
from neardup.errors import Conflict, Fatal, NeardupError, Transient
from neardup.http.requests import (
    CONTENT_TYPE,
    FAILED,
    INVALID,
    MALFORMED,
    NOT_JSON,
    UNAUTHENTICATED,
    ProblemType,
    Refused,
    WrongMember,
    answer_or_problem,
    expect_json,
    find_client_address,
    find_holder,
    parse_json,
    refuse_other_machines,
)
from neardup.http.server import listening, serve_metrics
from neardup.http.tokens import Entry, digest_of
from neardup.ledger import connect
from neardup.moderation.desk.app import make_application as desk_application
from neardup.moderation.desk.moderators import Moderator, add_moderator
from neardup.serve.app import make_application
from neardup.serve.service import Service
from pydantic import BaseModel, ConfigDict

from tests.support.servers import free_port
from tests.support.service import configuration, never_open

SECRET = "रहस्य"


class Story(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    ids: list[int] = []


members = st.dictionaries(
    st.sampled_from(["text", "ids", "other"]), st.one_of(st.just(SECRET), st.integers(), st.lists(st.just(SECRET)))
)


@given(members)
def test_a_body_is_its_model_or_names_what_is_wrong(body: dict[str, object]) -> None:
    if body.get("text") == SECRET and body.get("ids", []) == [] and "other" not in body:
        assert parse_json(Story, json.dumps(body).encode()).model_dump(exclude_unset=True) == body
        return
    with pytest.raises(Refused) as raised:
        parse_json(Story, json.dumps(body).encode())
    refused = raised.value
    assert refused.problem is INVALID and refused.errors
    assert {wrong.where.partition(".")[0] for wrong in refused.errors} <= {"text", "ids", "other"}
    assert SECRET not in str(refused), "a refusal quotes the body"


@given(st.binary(max_size=20).filter(lambda body: not body.strip()[:1].isdigit()))
def test_a_body_that_is_not_json_is_malformed(body: bytes) -> None:
    try:
        json.loads(body)
    except ValueError:
        with pytest.raises(Refused) as refused:
            parse_json(Story, body)
        assert refused.value.problem is MALFORMED


def test_a_content_type_is_needed() -> None:
    expect_json(make_mocked_request("POST", "/", {"Content-Type": "application/json; charset=utf-8"}))
    with pytest.raises(Refused) as refused:
        expect_json(make_mocked_request("POST", "/", {"Content-Type": "text/plain"}))
    assert refused.value.problem is NOT_JSON


@given(st.lists(st.text("abc", min_size=1), min_size=1, unique=True), st.data())
def test_a_token_is_found_among_others(secrets: list[str], data: st.DataObject) -> None:
    holders = [Entry(secret, digest_of(secret), {}) for secret in secrets]
    secret = data.draw(st.sampled_from(secrets))
    request = make_mocked_request("GET", "/", {"Authorization": f"Bearer {secret}"})
    assert find_holder(request, holders).name == secret
    for wrong in ({}, {"Authorization": secret}, {"Authorization": f"Bearer {secret}x"}):
        with pytest.raises(Refused) as refused:
            find_holder(make_mocked_request("GET", "/", wrong), [holders[secrets.index(secret)]])
        assert refused.value.problem is UNAUTHENTICATED


@pytest.mark.parametrize(
    ("host", "is_this"), [("localhost:1", True), ("[::1]:80", True), ("127.0.0.1", True), ("a.example", False)]
)
@pytest.mark.parametrize("forwarded", [{}, {"Via": "1.1 proxy"}, {"x-real-ip": "192.0.2.1"}], ids=str)
def test_only_this_machine_needs_no_token(host: str, is_this: bool, forwarded: dict[str, str]) -> None:
    request = make_mocked_request("GET", "/", {"Host": host} | forwarded)
    with nullcontext() if is_this and not forwarded else pytest.raises(Refused):
        refuse_other_machines(request)


@given(st.lists(st.ip_addresses(), max_size=3), st.lists(st.sampled_from(["127.0.0.1", "10.1.2.3", "::ffff:10.0.0.9"])))
def test_only_configured_proxies_are_believed(forged: list[object], proxies: list[str]) -> None:
    """The client is the address that the outermost proxy saw, whatever the client sends itself."""
    client = "192.0.2.7"
    hops = [*map(str, forged), client, *proxies]
    request = make_mocked_request("GET", "/", {"X-Forwarded-For": ", ".join(hops[:-1])}).clone(remote=hops[-1])
    assert find_client_address(request, ["127.0.0.1", "10.0.0.0/8"]) == client
    assert find_client_address(request, []) == hops[-1], "without configured proxies, the peer is the client"


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


JSON = "Content-Type: application/json\r\n"


def requests_of(route: web.AbstractRoute, secret: str) -> Iterator[bytes]:
    """Requests that a route refuses, each for a reason of its own, or answers."""
    assert route.resource is not None
    method, path = route.method, route.resource.canonical
    for name in ("{id}", "{story}", "{decision}", "{a}", "{b}"):
        path = path.replace(name, "7")
    token = f"Authorization: Bearer {secret}\r\n" if secret else ""
    for line, headers, body in (
        (f"{method} {path}", "", ""),
        (f"{method} {path}x/y", JSON, ""),
        (f"{method} {path.rpartition('/')[0]}/%0A", JSON, "{}"),
        (f"PATCH {path}", JSON, "{}"),
        (f"{method} {path}", JSON, "{"),
        (f"{method} {path}", JSON, "[]"),
        (f"{method} {path}", "Content-Type: text/plain\r\n", "{}"),
        (f"{method} {path}", f"{JSON}Content-Encoding: gzip\r\n", "{}"),
        (f"{method} {path}", f"{JSON}Content-Length: 999999999\r\n", ""),
        (f"{method} {path}", f"{JSON}Expect: the unexpected\r\n", "{}"),
        (f"{method} {path}", "X-Forwarded-For: 192.0.2.1\r\n", ""),
        (f"{method} {path}?first=x&limit=-1&language=tlh", "", ""),
    ):
        length = "" if "Length" in headers else f"Content-Length: {len(body)}\r\n"
        yield f"{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{token}{headers}\r\n{body}".encode()


NO_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # a TLS handshake
    b"nonsense\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: \0\r\n\r\n",
    b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
]


@asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[tuple[str, web.Application, str]]:
    config = configuration(folder)
    service = Service(config.serve, lambda: never_open(config), None, asyncio.Event())
    app = make_application(service)
    async with listening(app, "127.0.0.1:0", "serve.listen") as address:
        yield address, app, ""


@asynccontextmanager
async def desk(folder: Path) -> AsyncIterator[tuple[str, web.Application, str]]:
    connect(folder / "neardup.db").close()
    secret = add_moderator(folder / "moderators.toml", Moderator("Asha"))
    config = Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}"),
        ledger=Ledger(path=folder / "neardup.db"),
        review=Review(moderators=folder / "moderators.toml"),
    )
    async with open_desk(config, "127.0.0.1:0") as parts:
        app = desk_application(parts)
        async with listening(app, "127.0.0.1:0", "review.listen") as address:
            yield address, app, secret


@pytest.mark.parametrize("opened", [serve, desk])
async def test_every_refusal_is_a_problem(tmp_path: Path, opened: object) -> None:
    statuses = set[int]()
    async with opened(tmp_path) as (address, app, secret):  # type: ignore[operator]
        routes = [route for route in app.router.routes() if is_for_programs(route, opened is desk)]
        assert len(routes) > 9
        tokens = (secret, "neardup_wrong") if secret else ("",)
        requests = [request for route in routes for token in tokens for request in requests_of(route, token)]
        for sent in [*NO_HTTP, *requests]:
            reader, writer = await asyncio.open_connection(*address.split(":"))
            with closing(writer):
                writer.write(sent)
                status, head, body = await asyncio.wait_for(answer_of(reader), 60)
            statuses.add(status)
            if status >= 400 and b"/healthz" not in sent and b"/readyz" not in sent:
                assert f"Content-Type: {CONTENT_TYPE}" in head, (sent, head)
                problem = json.loads(body)
                assert problem["status"] == status, (sent, problem)
                assert {"type", "title", "detail"} <= problem.keys(), (sent, problem)
    assert {400, 404, 405, 417} <= statuses, statuses


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"Content-Length: (\d+)", head)
    return int(head.split()[1]), head, await reader.readexactly(int(length[1]) if length else 0)


def is_for_programs(route: web.AbstractRoute, is_desk: bool) -> bool:
    """Whether programs ask it; the other pages of the desk are for people."""
    return (
        route.method != "HEAD"
        and route.resource is not None
        and (not is_desk or route.resource.canonical.startswith("/api/"))
    )
