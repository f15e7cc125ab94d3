"""Every refusal of serve and of the desk's API is a problem by RFC 9457, also those that the framework makes."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web
from neardup.app import open_desk
from neardup.config import Config, Content, Ledger, Source
from neardup.config.sections import Review
from neardup.http.requests import CONTENT_TYPE
from neardup.http.server import listening
from neardup.ledger import connect
from neardup.moderation.desk.app import make_application as desk_application
from neardup.moderation.desk.moderators import Moderator, add_moderator
from neardup.serve.app import make_application
from neardup.serve.service import Service

from tests.support.http_service import configuration, never_open

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
