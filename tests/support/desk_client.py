"""Serves a desk in the process of the test, with an HTTP client that acts as a browser without scripts."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aiohttp import CookieJar, web
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_desk
from neardup.config import Config, Content, Detection, Ledger, Source
from neardup.config.section import Secret
from neardup.config.sections import Review
from neardup.http.server import LONGEST_LINE
from neardup.ledger import connect
from neardup.moderation.desk.app import make_application

TOKEN = "a token of some length"
BUSY_SECONDS = 120.0  # in which a busy machine starts a reader process
HIDING = Detection()
LOOPBACK, OPEN = "127.0.0.1:0", "0.0.0.0:0"
Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def desk(
    folder: Path,
    listen: str = LOOPBACK,
    token: str = "",
    moderators: Path | None = None,
    *,
    detection: Detection = HIDING,
    proof_key: Path | None = None,
    **review: Any,
) -> AsyncIterator[Client]:
    """An HTTP client, connected to a desk whose ledger is in this folder, and is empty if there is none.

    `review` has further keys of [review].
    """
    connect(folder / "neardup.db").close()
    config = Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}"),
        ledger=Ledger(path=folder / "neardup.db", proof_key=proof_key),
        review=Review(token=Secret(token), moderators=moderators, **review),
        detection=detection,
    )
    with patch("neardup.moderation.desk.parts.READ_SECONDS", BUSY_SECONDS):
        async with open_desk(config, listen) as parts:
            server = TestServer(make_application(parts))
            await server.start_server(max_line_size=LONGEST_LINE)
            async with TestClient(server, cookie_jar=CookieJar(unsafe=True), max_field_size=LONGEST_LINE) as client:
                yield client


def origin(client: Client) -> dict[str, str]:
    return {"Origin": f"http://{client.host}:{client.port}"}


async def form_token(client: Client, path: str = "/name") -> str:
    async with client.get(path) as answer:
        field = re.search(r'name="token" value="([\w-]+)"', await answer.text())
    assert field, f"{path} has no form"
    return field[1]


async def post(client: Client, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> int:
    sent = {"token": await form_token(client), **form}
    async with client.post(path, data=sent, headers=headers or origin(client), allow_redirects=False) as answer:
        return answer.status


@asynccontextmanager
async def named_client(
    folder: Path, name: str = "Asha", detection: Detection = HIDING, **review: Any
) -> AsyncIterator[Client]:
    """A client of a desk whose moderator has entered a name."""
    async with desk(folder, detection=detection, **review) as client:
        assert await post(client, "/name", {"name": name}) == 303
        yield client


async def sign_in(client: Client, secret: str) -> tuple[int, str]:
    """Log in with a token, in a browser without cookies; returns the status and the page."""
    client.session.cookie_jar.clear()
    form = {"token": await form_token(client, "/login"), "secret": secret, "back": "/"}
    status, _, page = await send(client, "/login", form)
    return status, page


async def get(client: Client, path: str) -> tuple[int, str]:
    """The status and the page at a path, without HTML escapes."""
    async with client.get(path) as answer:
        return answer.status, unescape(await answer.text())


def hidden_fields(page: str, form_class: str = "judge") -> dict[str, str]:
    """The hidden fields of the form of this class."""
    form = page.partition(f'class="{form_class}"')[2].partition("</form>")[0]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="([\w-]+)" value="([^"]*)"', form)}


async def send(client: Client, path: str, form: Mapping[str, str]) -> tuple[int, str, str]:
    """Post a form; returns the status, the redirect target, and the page."""
    async with client.post(path, data=form, headers=origin(client), allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location", ""), unescape(await answer.text())
