"""The samples behind the proxy, and runs over them in this process: the real pipeline, reader processes, store, ledger
and index.
"""

import asyncio
import csv
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
import stamina
from neardup.app import open_app, run_once
from neardup.config import Content, load
from neardup.core.text.html import Extraction
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.pages import reader_group, reader_pool, s3
from neardup.pages.reader_group import ReaderGroup
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.store import WorkPages
from neardup.pipeline.summary import RunSummary
from neardup.retry import ATTEMPTS

from tests.support.command import COMMON, Neardup
from tests.support.faults.fault_proxy import Proxy, proxied
from tests.support.ledger_state import state
from tests.support.paths import SAMPLES
from tests.support.s3_server import object_server

TIMEOUT_SECONDS = 0.25  # of a request: so long a fault that says nothing is waited for
BUCKET = "stories"
# Python runs this at the start of a process that has it on its path.
IMPATIENT = """
import sys
if any("neardup.pages.reader_process" in word for word in sys.orig_argv):
    from neardup.pages import s3
    s3.REQUEST_SECONDS = {seconds}
"""
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


@contextmanager
def kept_readers(seconds: float) -> Iterator[list[ReaderGroup]]:
    """Reader processes outlive their pool, and serve the next one on the same store: a start takes longer than a run.

    A request to the store may take so many seconds.  The caller ends the processes that it receives, in their loop.
    """
    kept: list[tuple[str, ReaderGroup]] = []
    started: list[ReaderGroup] = []
    start_group, close = reader_group.start_group, ReaderPool.aclose

    async def take_over_or_start(
        content: Content, extraction: Extraction, size: int, submitted: Path | None, works: WorkPages | None
    ) -> ReaderGroup:
        served = repr((content, extraction, size))  # whatever the ledger, whose folder of submitted pages is empty
        for n, (store, group) in enumerate(kept):
            if store == served and len(group.running) == size:
                return kept.pop(n)[1]
        started.append(await start_group(content, extraction, size, submitted, works))
        return started[-1]

    async def keep_and_close(pool: ReaderPool) -> None:
        groups, pool._groups = pool._groups, []
        kept.extend((repr((pool._content, pool._extraction, len(group.connections))), group) for group in groups)
        await close(pool)

    with TemporaryDirectory() as site, pytest.MonkeyPatch.context() as patch:
        code = IMPATIENT.format(seconds=seconds)
        (Path(site) / "sitecustomize.py").write_text(code, encoding="utf-8")
        patch.setitem(reader_group.READER_ENVIRONMENT, "PYTHONPATH", site)
        patch.setattr(reader_pool, "start_group", take_over_or_start)
        patch.setattr(ReaderPool, "aclose", keep_and_close)
        yield started


@contextmanager
def impatient() -> Iterator[None]:
    """No pauses between attempts, and credentials that any of our stores takes."""
    with pytest.MonkeyPatch.context() as patch, stamina.set_testing(True, attempts=ATTEMPTS):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setattr(s3, "REQUEST_SECONDS", TIMEOUT_SECONDS)
        yield


@contextmanager
def in_this_process() -> Iterator[None]:
    """Impatient runs, in one event loop and with the same reader processes."""
    with (
        impatient(),
        kept_readers(TIMEOUT_SECONDS) as groups,
        asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner,
        pytest.MonkeyPatch.context() as patch,
    ):

        def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
            try:
                return runner.run(coroutine)
            except KeyboardInterrupt:  # as asyncio.run does it
                runner.run(cancel_others())
                raise

        patch.setattr(Bed, "run_in_loop", run)
        try:
            yield
        finally:
            runner.run(end(groups))


async def cancel_others() -> None:
    """Cancel all other tasks of this event loop, and wait until they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def end(groups: Iterable[ReaderGroup]) -> None:
    """End reader processes."""
    await asyncio.gather(*(group.end() for group in groups))


@dataclass(frozen=True)
class Bed:
    """A ledger of its own, in a folder with its configuration."""

    folder: Path
    run_in_loop: ClassVar[Callable[..., Any]] = asyncio.run

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
        summary: RunSummary = type(self).run_in_loop(self.once(command, dead_letters))
        return summary


def listed_letters(neardup: Neardup, *arguments: str) -> dict[str, Any]:
    """What `dead-letters --json` gives."""
    ended = neardup("dead-letters", "--json", *arguments)
    assert ended.code == 0, ended.err
    return ended.facts


def over_s3(neardup: Neardup) -> Neardup:
    """The command, with credentials that any of our stores takes."""
    neardup.env.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    return neardup
