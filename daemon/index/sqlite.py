"""The embedded index: tables in the ledger's file, on a connection and thread of its own.

SimHashes: a row for each group of bands (see core.banding), so that a lookup is one range read a
group.  Signatures: a row for each bucket, with its story numbers packed.  The distances and the bands
that decide where a story stands are on record; others need a rebuild.
"""

import asyncio
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeVar

from daemon.core.banding import group_values, sketch_values
from daemon.errors import Fatal, Transient
from daemon.index import Bandings, Found, Mark
from daemon.index.buckets import NUMBER_BYTES, Read, found, layout, packed
from daemon.records import Banded, Change, Language

T = TypeVar("T")
SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_sizes (language TEXT PRIMARY KEY, stories INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_groups (bucket INTEGER, story INTEGER, PRIMARY KEY (bucket, story)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_sketches (bucket INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
"""
LANGUAGES = list(Language)
BUSY_SECONDS = 30


class SqliteIndex:
    """The `Index` in the file at `path`."""

    def __init__(self, path: Path, bandings: Bandings) -> None:
        self._bandings = bandings
        self._layout = {
            "hamming": layout(bandings, lambda banding: banding.hamming),
            "bands": layout(bandings, lambda banding: banding.bands),
        }
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
        other = [f"detection.{setting}" for setting, value in self._layout.items() if marks.get(setting) != value]
        if marks and other:
            return Mark(marks["ledger"], f"{marks['version']}, banded for another {' and '.join(other)}", None)
        return Mark(marks.get("ledger"), marks.get("version"), marks.get("applied"))

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        asked = [
            (tuple(self._groups(probe)), tuple(self._sketches(probe)), self._bandings[probe.language])
            for probe in probes
        ]

        def read(db: sqlite3.Connection) -> tuple[int | None, Read[int, set[int]], Read[int, bytes]]:
            db.execute("BEGIN")  # the mark and the members are of one moment
            applied = _applied(db)
            ids = self._ids(db, {group for groups, _, _ in asked for group in groups})
            numbers = self._numbers(db, {sketch for _, sketches, _ in asked for sketch in sketches})
            db.execute("COMMIT")
            return applied, ids, numbers

        applied, ids, numbers = await self._do(read)
        return applied, found(asked, ids, numbers)

    def _ids(self, db: sqlite3.Connection, groups: Iterable[int]) -> Read[int, set[int]]:
        members, capped = {}, {}
        rows = db.execute(
            "SELECT bucket, story FROM index_groups WHERE bucket IN (SELECT value FROM json_each(?)) ORDER BY 1, 2",
            (json.dumps(list(groups)),),
        )
        for group, stories in groupby(rows, itemgetter(0)):
            ids = [story_id for _, story_id in stories]
            most = self._bandings[LANGUAGES[group >> 40]].max_bucket
            if len(ids) > most:
                capped[group] = (_group_name(group), len(ids))
            members[group] = set(ids[:most])
        return Read(members, capped)

    def _numbers(self, db: sqlite3.Connection, sketches: Iterable[int]) -> Read[int, bytes]:
        members, capped = {}, {}
        most = {sketch: NUMBER_BYTES * self._bandings[LANGUAGES[sketch >> 24]].max_bucket for sketch in sketches}
        rows = db.execute(
            "SELECT bucket, length(numbers), CASE WHEN length(numbers) <= asked.value THEN numbers END"
            " FROM json_each(?) asked CROSS JOIN index_sketches ON bucket = CAST(asked.key AS INTEGER)",
            (json.dumps(most),),
        )
        for sketch, length, numbers in rows:
            if numbers is None:  # SQL would read it whole, whatever part was asked for
                capped[sketch] = (_sketch_name(sketch), length // NUMBER_BYTES)
                with db.blobopen("index_sketches", "numbers", sketch, readonly=True) as blob:
                    blob.seek(length - most[sketch])
                    members[sketch] = blob.read()
            else:
                members[sketch] = numbers
        return Read(members, capped)

    async def apply(self, changes: Sequence[Change], applied: int | None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            mark = _applied(db)
            fresh = [change for change in changes if change.seq == 0 or mark is None or change.seq > mark]
            self._move(db, fresh)
            self._enter(db, fresh)
            if applied is not None and (mark is None or applied > mark):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._do(write)

    def _move(self, db: sqlite3.Connection, changes: Sequence[Change]) -> None:
        """Between the buckets of SimHashes."""
        for change in changes:
            for banded, step, statement in (
                (change.old, -1, "DELETE FROM index_groups WHERE bucket = ? AND story = ?"),
                (change.new, +1, "INSERT OR IGNORE INTO index_groups VALUES (?, ?)"),
            ):
                if banded is None:
                    continue
                rows = [(group, change.story_id) for group in self._groups(banded)]
                if db.executemany(statement, rows).rowcount:
                    db.execute(
                        "INSERT INTO index_sizes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET stories = stories + ?2",
                        (banded.language, step),
                    )

    def _enter(self, db: sqlite3.Connection, changes: Sequence[Change]) -> None:
        """Into the buckets of signatures, which are never left."""
        entering: dict[int, bytes] = defaultdict(bytes)
        for change in changes:
            if change.new:
                number = packed(change.number)
                for sketch in self._sketches(change.new):
                    entering[sketch] += number
        db.executemany(
            "INSERT INTO index_sketches VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET numbers = CAST(numbers || excluded.numbers AS BLOB)",  # || makes a text of them
            sorted(entering.items()),
        )

    async def clear(self, ledger_id: str, version: str) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_groups", "index_sketches", "index_sizes", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            marks = {"ledger": ledger_id, "version": version, **self._layout}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._do(wipe)

    async def sizes(self) -> dict[Language, int]:
        rows = await self._do(lambda db: db.execute("SELECT language, stories FROM index_sizes").fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        groups = json.dumps(list({group for probe in sample for group in self._groups(probe)}))
        sketches = json.dumps(list({sketch for probe in sample for sketch in self._sketches(probe)}))

        def read(db: sqlite3.Connection) -> dict[str, int]:
            members = db.execute(
                "SELECT bucket, count(*) FROM index_groups WHERE bucket IN (SELECT value FROM json_each(?)) GROUP BY 1",
                (groups,),
            )
            lengths = db.execute(
                "SELECT bucket, length(numbers) / ? FROM index_sketches"
                " WHERE bucket IN (SELECT value FROM json_each(?))",
                (NUMBER_BYTES, sketches),
            )
            return {_group_name(group): n for group, n in members} | {_sketch_name(sketch): n for sketch, n in lengths}

        return await self._do(read)

    async def trouble(self) -> str | None:
        said = await self._do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        return None if said == "ok" else str(said)

    async def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._db.close()

    def _groups(self, banded: Banded) -> list[int]:
        """Language, group and the group's leading 32 bits in one integer."""
        values = group_values(banded.simhash, self._bandings[banded.language].hamming)
        language = LANGUAGES.index(banded.language)
        return [(language << 40) | (group << 32) | value for group, value in enumerate(values)]

    def _sketches(self, banded: Banded) -> list[int]:
        """Language, band and the band's 16 bits in one integer."""
        values = sketch_values(banded.signature, self._bandings[banded.language].bands)
        language = LANGUAGES.index(banded.language)
        return [(language << 24) | (band << 16) | value for band, value in enumerate(values)]

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


def _applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    applied: int | None = row[0] if row else None
    return applied


def _group_name(group: int) -> str:
    return f"{LANGUAGES[group >> 40]}:{group >> 32 & 0xFF}:{group & 0xFFFFFFFF:08X}"


def _sketch_name(sketch: int) -> str:
    return f"sketch:{LANGUAGES[sketch >> 24]}:{sketch >> 16 & 0xFF}:{sketch & 0xFFFF:04X}"
