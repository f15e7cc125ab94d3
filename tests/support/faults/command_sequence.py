"""Runs every command that writes, in turn, on the samples, while stories are edited, moved and shortened."""

import csv
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import redis

from tests.support.command import embedded
from tests.support.faults.command_driver import At, Driver, Started
from tests.support.faults.consistency import State, differences, given, index_faults, state_of
from tests.support.paths import SAMPLES

ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
SETTINGS = {"NEARDUP_RUN__BATCH": "8", "NEARDUP_RUN__OVERLAP": "1s"}
PLAGIARISM, NOT_SIMILAR = ("4100000", "4100006"), ("4100001", "4100007")
FORGOTTEN = 4102000  # of which an exact copy is there
SHORT = '<article><div class="story"><p>one two three</p></div></article>'


class Life:
    """One ledger and one index, of one of the INDEXES; `url` is an empty Redis's."""

    def __init__(self, driver: Driver, folder: Path, index: str, url: str = "") -> None:
        self.driver, self.folder, self.index, self.url = driver, folder, index, url
        self.env = dict(SETTINGS)
        self.given: Counter[tuple[int, int]] = Counter()
        shutil.copytree(SAMPLES / "stories", folder / "stories")  # makes the folder, too
        self._rows = {int(row["id"]): dict(row) for row in ROWS}
        self._manifest = folder / "stories.jsonl"
        self._day = 0
        at = "sqlite:" if index == "sqlite" else url
        layout = f'layout = "{index}"\n' if index != "sqlite" else ""
        config = embedded(self._manifest, folder / "stories", at).replace("[ledger]", f"{layout}[ledger]")
        (folder / "config.toml").write_text(
            f'{config}[export]\npath = "flags.jsonl"\nformat = "jsonl"\n', encoding="utf-8"
        )
        if url:
            with redis.Redis.from_url(url) as client:
                client.flushall()
        self._list()

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    def start(self, *arguments: str, at: At | None = None, name: str = "", **env: str) -> Started:
        return self.driver.start(self.folder, *arguments, at=at, name=name, **self.env, **env)

    def faults(self, reference: State) -> list[str]:
        """What the ledger has otherwise than one that nothing happened to, and the index than the ledger."""
        return differences(state_of(self.ledger), reference) + index_faults(self.ledger, self.index, self.url)

    def export(self) -> None:
        """Take the flags that no export has given."""
        done = self.start("export", "--new", "--format", "jsonl")
        assert done.wait() == 0, done.said()
        self.given += given(done.output())

    def edit_all_sorts(self) -> None:
        """In each language a story becomes a copy; and stories come, move, become too short, cannot be listed."""
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
        self._list()

    def drop_flags(self) -> None:
        """Leave the ledger with stories and verdicts, for a sweep to find the pairs."""
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

    def _list(self) -> None:
        rows = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self._rows.values())
        self._manifest.write_text(rows, encoding="utf-8")


Prepare = Callable[[Life], None]


def nothing(_: Life) -> None:
    """Needs no preparation."""


ACTS: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    "backfill": (nothing, ("backfill",)),
    "daily": (Life.edit_all_sorts, ("daily",)),
    "judge": (nothing, ("judge", "neardup.db", *PLAGIARISM, "plagiarism")),
    "judge another": (nothing, ("judge", "neardup.db", *NOT_SIMILAR, "not_similar")),
    "undo": (nothing, ("judge", "neardup.db", *PLAGIARISM, "open")),
    "forget": (nothing, ("forget", str(FORGOTTEN))),
    "sweep": (Life.drop_flags, ("sweep",)),
    "reindex": (nothing, ("reindex",)),
    "daily again": (Life.edit_all_sorts, ("daily",)),
}
