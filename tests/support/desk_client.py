"""Serves a desk in the process of the test, with an HTTP client that acts as a browser without scripts, and writes
small corpora for it, as pages and a manifest.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
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

from tests.support.command import COMMON

ALPHABET = [chr(code) for code in range(0x0915, 0x0939)]


def prose(seed: int, words: int = 120) -> str:
    """Generated Hindi words; the same seed gives the same words, and two seeds give different ones."""
    text, state = list[str](), seed + 1
    for _ in range(words):
        letters = list[str]()
        for _ in range(4):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            letters.append(ALPHABET[state >> 33 & 31])
        text.append("".join(letters))
    return " ".join(text)


def write(folder: Path, stories: Sequence[tuple[int, str, str]], **columns: Iterable[Any]) -> str:
    """Write stories (id, title, HTML of the body) as pages and a manifest; returns the configuration for them.

    `columns` are more columns of the manifest, with a value for each story.
    """
    pages = folder / "pages"
    pages.mkdir(parents=True)
    more = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)] or [{}] * len(
        stories
    )
    with (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest:
        for n, (story_id, title, body) in enumerate(stories):
            page = f"<html><body><article><div class=story>{body}</div></article></body></html>"
            (pages / f"{story_id}.html").write_text(page, encoding="utf-8", errors="surrogatepass")
            row = {"id": story_id, "language": "hi", "path": f"{story_id}.html", "title": title}
            row |= {"author_id": f"a{n}", "published_at": f"2026-01-{n + 1:02}T00:00:00Z"} | more[n]
            manifest.write(json.dumps(row) + "\n")
    source = f'[source]\nmanifest = "{folder}/manifest.jsonl"\n[content]\nurl = "file:{pages}"\n'
    return source + COMMON.format(index="sqlite:")


def pairs_of(folder: Path, count: int, words: int) -> str:
    """Write `count` stories of so many words, each twice; returns the configuration for them."""
    texts = ["".join(f"<p>{prose(n * 1_000 + at, 60)}</p>" for at in range(0, words, 60)) for n in range(count)]
    stories = [(1_000 + 2 * n + copy, f"कहानी {n}", texts[n]) for n in range(count) for copy in (0, 1)]
    return write(folder, stories, published_at=[f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z" for n in range(2 * count)])


def cluster_of(folder: Path, size: int) -> str:
    """Write `size` copies of one story and two copies of another; returns the configuration for them."""
    stories = [(100 + n, f"प्रति {n}", f"<p>{prose(1)}</p>") for n in range(size)]
    stories += [(200 + n, f"जोड़ी {n}", f"<p>{prose(2)}</p>") for n in range(2)]
    return write(folder, stories)


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
