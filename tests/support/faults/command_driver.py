"""Starts commands through tests.support.faults.killed_command and waits for them to end.

A sequence runs all commands that write on the samples, while stories are edited, moved and shortened.
"""

import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import redis
from msgspec import Struct
from neardup.ledger import files
from neardup.pages.fork_server import READER_ENVIRONMENT

from tests.support.command import embedded, environment
from tests.support.faults.consistency import State, differences, exported_pairs, index_faults, state_of
from tests.support.forked_command import ForkedProcess
from tests.support.paths import ROOT, SAMPLES

StopPoint = dict[str, Any]  # the keys of killed_command.Trigger


class StartedCommand(Struct, frozen=True):
    """A process that runs the command; its output is in the files `name`.out and `name`.err of its folder."""

    driver: "Driver"
    folder: Path
    name: str
    pid: int

    def wait(self) -> int | None:
        """Wait until it ends or stops; returns its exit code, negative for a signal, or None if SIGSTOP stopped it."""
        code: int | None = self.driver.request({"wait": self.pid}).get("code")
        return code

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> int | None:
        """Kill it; returns what `wait` returns."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def stderr(self) -> str:
        return self._file("err")

    def stdout(self) -> str:
        return self._file("out")

    def facts(self) -> dict[str, Any]:
        """The JSON object on the last line of its stdout."""
        return dict(json.loads(self.stdout().splitlines()[-1]))

    def reached_points(self) -> dict[str, int]:
        """How often it reached each point; recorded only if it ended by itself."""
        return dict(json.loads(self._file("reached")))

    def _file(self, kind: str) -> str:
        return (self.folder / f"{self.name}.{kind}").read_text(encoding="utf-8")


class Driver:
    """Starts commands, each with its folder, its environment and the point at which it gets a signal."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._names = (f"{n}" for n in count(1))

    def request(self, message: dict[str, Any]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(
        self, folder: Path, *arguments: str, at: StopPoint | None = None, name: str = "", **env: str
    ) -> StartedCommand:
        name = name or next(self._names)
        request = {"folder": str(folder), "name": name, "arguments": arguments, "at": at, "env": env}
        return StartedCommand(self, folder, name, self.request({"start": request}))


@contextmanager
def command_driver() -> Iterator[Driver]:
    command = [sys.executable, "-W", "error", "-m", "tests.support.faults.killed_command"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment() | READER_ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Driver(process)
        finally:
            process.stdin.close()  # type: ignore[union-attr]
            process.wait()


def kill_with_readers(process: "subprocess.Popen[Any] | ForkedProcess") -> None:
    """Kill a command, then its reader processes, which would only use CPU time until they notice."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    readers = [int(pid) for pid in children.read_text(encoding="ascii").split()] if process.poll() is None else []
    process.kill()
    for pid in readers:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    process.wait()


ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
SETTINGS = {"NEARDUP_RUN__BATCH": "8", "NEARDUP_RUN__OVERLAP": "1s"}
PLAGIARISM, NOT_SIMILAR = ("4100000", "4100006"), ("4100001", "4100007")
FORGOTTEN = 4102000  # the samples have an exact copy of it
SHORT = '<article><div class="story"><p>one two three</p></div></article>'


class Deployment:
    """A folder with stories and a ledger, and an index of one of the INDEXES; `url` is a Redis, which is emptied."""

    def __init__(self, driver: Driver, folder: Path, index: str, url: str = "") -> None:
        self.driver, self.folder, self.index, self.url = driver, folder, index, url
        self.env = dict(SETTINGS)
        self.exported: Counter[tuple[int, int]] = Counter()
        shutil.copytree(SAMPLES / "stories", folder / "stories")  # also creates the folder
        self._rows = {int(row["id"]): dict(row) for row in ROWS}
        self._manifest = folder / "stories.jsonl"
        self._day = 0
        index_url = "sqlite:" if index == "sqlite" else url
        layout = f'layout = "{index}"\n' if index != "sqlite" else ""
        config = embedded(self._manifest, folder / "stories", index_url).replace("[ledger]", f"{layout}[ledger]")
        (folder / "config.toml").write_text(
            f'{config}[export]\npath = "flags.jsonl"\nformat = "jsonl"\n', encoding="utf-8"
        )
        if url:
            with redis.Redis.from_url(url) as client:
                client.flushall()
        self._write_manifest()

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    def start(self, *arguments: str, at: StopPoint | None = None, name: str = "", **env: str) -> StartedCommand:
        return self.driver.start(self.folder, *arguments, at=at, name=name, **self.env, **env)

    def faults(self, reference: State) -> list[str]:
        """The differences between the ledger and an undisturbed one, and between the index and the ledger."""
        return differences(state_of(self.ledger), reference) + index_faults(self.ledger, self.index, self.url)

    def export(self) -> None:
        """Export the flags that were not exported before."""
        done = self.start("export", "--new", "--format", "jsonl")
        assert done.wait() == 0, done.stderr()
        self.exported += exported_pairs(done.stdout())

    def edit_stories(self) -> None:
        """Make a story of each language a copy, and add one; move a story, shorten one, and list an invalid one."""
        self._day += 1
        for tens in range(10):
            first = 4_100_000 + 1000 * tens
            edited, original = first + 2, first + (1 if self._day % 2 else 3)
            self._put(edited, self._page(original).read_text(encoding="utf-8"))
            new = first + 900 + self._day
            self._rows[new] = {"id": str(new), "language": self._rows[first]["language"], "title": "new"}
            self._put(new, self._page(first).read_text(encoding="utf-8"))
        self._put(4_104_003, SHORT)
        moved = self._rows[4_103_003]
        moved |= {"path": moved.get("path") or f"{moved['language']}/4103003.html", "language": "HINDI"}
        self._put(4_103_003, self._page(4_103_003).read_text(encoding="utf-8"))
        self._rows[4_199_990 + self._day] = {"id": str(4_199_990 + self._day), "language": "SANSKRIT"}
        self._write_manifest()

    def lose_passages(self) -> None:
        """Remove every segment of the passage index, so that the next run has to read the stories again."""
        shutil.rmtree(files.name_passages_folder(self.ledger), ignore_errors=True)

    def drop_flags(self) -> None:
        """Remove flags and candidates from the ledger, so that a sweep has to find the pairs."""
        with closing(sqlite3.connect(self.ledger)) as db:
            db.execute("DELETE FROM flags")
            db.execute("DELETE FROM candidates")
            db.commit()

    def _page(self, story_id: int) -> Path:
        row = self._rows[story_id]
        return self.folder / "stories" / (row.get("path") or f"{row['language']}/{story_id}.html")

    def _put(self, story_id: int, html: str) -> None:
        self._page(story_id).write_text(html, encoding="utf-8")
        self._rows[story_id]["updated_at"] = f"2025-11-{self._day:02}T00:00:00Z"

    def _write_manifest(self) -> None:
        rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self._rows.values())
        self._manifest.write_text(rows, encoding="utf-8")


Prepare = Callable[[Deployment], None]


def no_preparation(_: Deployment) -> None:
    """The command needs no preparation."""


COMMANDS: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "backfill": (no_preparation, ("backfill",)),
    "daily": (Deployment.edit_stories, ("daily",)),
    "judge": (no_preparation, ("judge", "neardup.db", *PLAGIARISM, "plagiarism")),
    "judge another": (no_preparation, ("judge", "neardup.db", *NOT_SIMILAR, "not_similar")),
    "undo": (no_preparation, ("judge", "neardup.db", *PLAGIARISM, "open")),
    "forget": (no_preparation, ("forget", str(FORGOTTEN))),
    "sweep": (Deployment.drop_flags, ("sweep",)),
    "reindex": (no_preparation, ("reindex",)),
    "daily after a loss": (Deployment.lose_passages, ("daily",)),
    "daily again": (Deployment.edit_stories, ("daily",)),
}
