"""The samples behind the proxy, and runs over them in this process: the real pipeline, store, ledger and index.

Pages are read by threads, for a process to start costs more than a run.
"""

import asyncio
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stamina
from neardup import app
from neardup.app import open_app, run_once
from neardup.config import Content, load
from neardup.core.page import Page, fingerprint_page, shingle_story, text_of
from neardup.core.text.html import Extraction
from neardup.errors import Gone, NeardupError
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.pages import s3
from neardup.pages.adaptive_limit import AdaptiveLimit
from neardup.pages.results import NotModified, PageResult, ShingledResult, failure_of
from neardup.pages.store import Pages, path_of
from neardup.pipeline.summary import RunSummary
from neardup.records import Story
from neardup.retry import ATTEMPTS, retried

from tests.support.builders import fetch_page
from tests.support.command import COMMON, Neardup
from tests.support.faults.fault_proxy import Proxy, proxied
from tests.support.ledger_state import state
from tests.support.paths import SAMPLES
from tests.support.s3_server import object_server

TIMEOUT_SECONDS = 0.25  # of a request: so long a fault that says nothing is waited for
BUCKET = "stories"
SERVED = """
[source]
manifest = "{manifest}"
[content]
url = "s3://{bucket}/"
endpoint = "{endpoint}"
region = "us-east-1"
path_style = true
"""
with (SAMPLES / "manifest.csv").open(encoding="utf-8") as _file:
    PATHS = [f"/{BUCKET}/{row['language']}/{row['id']}.html" for row in csv.DictReader(_file)]
State = dict[str, list[tuple[object, ...]]]


def configuration(endpoint: str, manifest: Path = SAMPLES / "manifest.csv", index: str = "sqlite:") -> str:
    """The samples, over S3."""
    return (SERVED + COMMON).format(manifest=manifest, bucket=BUCKET, endpoint=endpoint, index=index)


@contextmanager
def served_samples() -> Iterator[Proxy]:
    """The samples' pages by a real server, the proxy before it."""
    with object_server(SAMPLES / "stories", BUCKET) as endpoint, proxied(endpoint) as proxy:
        yield proxy


class Threads:
    """What neardup.pages.reader_pool.ReaderPool does, by threads of this process."""

    cpu_seconds = 0.0
    costly_stories = ()

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = AdaptiveLimit(most)
        self._content = content
        self._pages = Pages(content)
        self._extraction = extraction

    async def read(self, story: Story, etag: str | None, *, alone: bool = False) -> PageResult:
        path = path_of(self._content, story)
        try:
            page = await retried("fetch", lambda: self._got(path, etag))
        except NeardupError as error:
            return failure_of(error)
        return NotModified() if page is None else fingerprint_page(page, self._extraction)

    async def shingled(self, story: Story) -> ShingledResult:
        path = path_of(self._content, story)
        try:
            page = await retried("fetch", lambda: self._got_once_more(path))
        except NeardupError as error:
            return failure_of(error)
        assert page is not None
        text = text_of(page, self._extraction)
        return shingle_story(text) if isinstance(text, str) else text

    async def _got_once_more(self, path: str) -> Page | None:
        try:
            return await self._got(path, None)
        except Gone:
            return await self._got(path, None)

    async def _got(self, path: str, etag: str | None) -> Page | None:
        async with self.concurrency.slot():
            return await asyncio.to_thread(fetch_page, self._pages, path, etag)

    async def aclose(self) -> None:
        """There is nothing to close."""


@contextmanager
def in_this_process() -> Iterator[None]:
    """Runs by threads, impatient ones: no pauses between attempts."""
    with pytest.MonkeyPatch.context() as patch, stamina.set_testing(True, attempts=ATTEMPTS):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setattr(app, "ReaderPool", Threads)
        patch.setattr(s3, "REQUEST_SECONDS", TIMEOUT_SECONDS)
        yield


@dataclass(frozen=True)
class Bed:
    """A ledger of its own, in a folder with its configuration."""

    folder: Path

    def configure(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text, encoding="utf-8")

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    def state(self) -> State:
        """What law 8 compares."""
        return state(Neardup(self.folder, {}))

    async def once(self, command: str, dead_letters: DeadLetterFilter | None = None) -> RunSummary:
        async with open_app(load(self.folder / "config.toml")) as app:
            return await run_once(app, command, asyncio.Event(), dead_letters=dead_letters)

    def run(self, command: str, dead_letters: DeadLetterFilter | None = None) -> RunSummary:
        return asyncio.run(self.once(command, dead_letters))


def listed_letters(neardup: Neardup, *arguments: str) -> dict[str, Any]:
    """What `dead-letters --json` gives."""
    ended = neardup("dead-letters", "--json", *arguments)
    assert ended.code == 0, ended.err
    return ended.facts


def over_s3(neardup: Neardup) -> Neardup:
    """The command, with credentials that any of our stores takes."""
    neardup.env.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    return neardup
