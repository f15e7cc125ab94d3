"""The samples behind the proxy, and runs over them in this process: the real pipeline, reader processes, store, ledger
and index.
"""

import asyncio
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import stamina
from msgspec import Struct
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.pages import fork_server, s3
from neardup.pipeline.summary import RunSummary
from neardup.retry import ATTEMPTS

from tests.support.command import COMMON, Neardup
from tests.support.faults.fault_proxy import Proxy, proxied
from tests.support.paths import SAMPLES
from tests.support.s3_server import object_server
from tests.support.samples import state

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
def impatient(seconds: float = TIMEOUT_SECONDS) -> Iterator[None]:
    """No pauses between attempts, requests of reader processes that may take so many seconds, and credentials that any
    of our stores takes.
    """
    with (
        TemporaryDirectory() as site,
        pytest.MonkeyPatch.context() as patch,
        stamina.set_testing(True, attempts=ATTEMPTS),
    ):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setattr(s3, "REQUEST_SECONDS", TIMEOUT_SECONDS)
        (Path(site) / "sitecustomize.py").write_text(IMPATIENT.format(seconds=seconds), encoding="utf-8")
        patch.setitem(fork_server.READER_ENVIRONMENT, "PYTHONPATH", site)
        yield


class Bed(Struct, frozen=True):
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
