"""The embedded index: one table in the ledger's file, on a connection and thread of its own.

A row for each group of bands (see core.banding), so that a lookup is one range read a group.  The
distances that the groups serve are on record; other distances need a rebuild.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from daemon.core.banding import group_values
from daemon.errors import Fatal, Transient
from daemon.index import Distances, Mark
from daemon.records import Banded, Change, Language

T = TypeVar("T")
SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_sizes (language TEXT PRIMARY KEY, stories INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_groups (bucket INTEGER, story INTEGER, PRIMARY KEY (bucket, story)) WITHOUT ROWID;
"""
LANGUAGES = list(Language)
BUSY_SECONDS = 30


class SqliteIndex:
    """The `Index` in the file at `path`."""

    def __init__(self, path: Path, distances: Distances) -> None:
        self._distances = distances
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="index")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes, the ledger replays
            self._db.executescript(SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error

    async def mark(self) -> Mark:
        marks = dict(await self._do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        if marks and marks["distances"] != self._layout():
            return Mark(marks["ledger"], f"{marks['version']}, banded for another detection.hamming", None)
        return Mark(marks.get("ledger"), marks.get("version"), marks.get("applied"))

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[set[int]]]:
        buckets = [self._buckets(probe) for probe in probes]

        def read(db: sqlite3.Connection) -> tuple[int | None, dict[int, set[int]]]:
            members: dict[int, set[int]] = {}
            db.execute("BEGIN")  # the mark and the members are of one moment
            applied = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
            rows = db.execute(
                "SELECT bucket, story FROM index_groups WHERE bucket IN (SELECT value FROM json_each(?))",
                (json.dumps([bucket for row in buckets for bucket in row]),),
            )
            for bucket, story in rows:
                members.setdefault(bucket, set()).add(story)
            db.execute("COMMIT")
            return applied and applied[0], members

        applied, members = await self._do(read)
        return applied, [set().union(*(members.get(bucket, ()) for bucket in row)) for row in buckets]

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for change in changes:
                for banded, step, statement in (
                    (change.old, -1, "DELETE FROM index_groups WHERE bucket = ? AND story = ?"),
                    (change.new, +1, "INSERT OR IGNORE INTO index_groups VALUES (?, ?)"),
                ):
                    if banded is None:
                        continue
                    rows = [(bucket, change.story_id) for bucket in self._buckets(banded)]
                    if db.executemany(statement, rows).rowcount:
                        db.execute(
                            "INSERT INTO index_sizes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET stories = stories + ?2",
                            (banded.language, step),
                        )
            if applied is not None:
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._do(write)

    async def clear(self, ledger_id: str, version: str) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_groups", "index_sizes", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            marks = {"ledger": ledger_id, "version": version, "distances": self._layout()}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._do(wipe)

    async def sizes(self) -> dict[Language, int]:
        rows = await self._do(lambda db: db.execute("SELECT language, stories FROM index_sizes").fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        names = {
            bucket: f"{probe.language}:{group}:{bucket & 0xFFFFFFFF:08X}"
            for probe in sample
            for group, bucket in enumerate(self._buckets(probe))
        }
        rows = await self._do(
            lambda db: db.execute(
                "SELECT bucket, count(*) FROM index_groups WHERE bucket IN (SELECT value FROM json_each(?)) GROUP BY 1",
                (json.dumps(list(names)),),
            ).fetchall()
        )
        return {names[bucket]: n for bucket, n in rows}

    async def trouble(self) -> str | None:
        said = await self._do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        return None if said == "ok" else str(said)

    async def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._db.close()

    def _layout(self) -> str:
        return ",".join(str(self._distances[language]) for language in LANGUAGES)

    def _buckets(self, banded: Banded) -> list[int]:
        """Language, group and the group's leading bits in one integer."""
        values = group_values(banded.simhash, self._distances[banded.language])
        language = LANGUAGES.index(banded.language)
        return [(language << 40) | (group << 32) | value for group, value in enumerate(values)]

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def call() -> T:
            try:
                return work(self._db)
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                kind = Transient if isinstance(error, sqlite3.OperationalError) and "locked" in str(error) else Fatal
                raise kind(f"the index failed: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
