"""The embedded index, packed (see neardup.index.packed_buckets): tables in the ledger's file, on a connection
and a thread of its own.

The distances, bands and widths that decide where a story stands are on record; others need a rebuild.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from neardup.core.candidates.banding import BAND_BITS
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.errors import Fatal
from neardup.index import packed_buckets
from neardup.index.bulk import Part, Spool, parts_of, put_aside
from neardup.index.marks import layout, refuse_gap, strange
from neardup.index.protocol import Bandings, Found, Mark
from neardup.records import LANGUAGES, NUMBER_OF, Banded, Change, Language
from neardup.sqlite import ThreadedConnection, failure

SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_sizes (language TEXT PRIMARY KEY, stories INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_buckets (bucket INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
"""
APPEND = (
    "INSERT INTO index_buckets VALUES (?, ?)"  # || makes a text of them
    " ON CONFLICT DO UPDATE SET numbers = CAST(numbers || excluded.numbers AS BLOB)"
)
COLUMN_BITS = 6  # a row's bucket is language, column and value side by side
BUSY_SECONDS = 30


class SqliteIndex:
    """The `Index` in the file at `path`."""

    def __init__(self, path: Path, bandings: Bandings) -> None:
        self._bandings = bandings
        self._layout = {
            "hamming": layout(bandings, lambda banding: banding.hamming),
            "bands": layout(bandings, lambda banding: banding.bands),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # what a power cut takes, the ledger replays
            db.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error
        self._connection = ThreadedConnection(db, "the index failed")

    async def mark(self) -> Mark:
        marks = dict(await self._connection.do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        mark = Mark(marks.get("ledger"), marks.get("version"), marks.get("applied"))
        other = [f"detection.{setting}" for setting, value in self._layout.items() if marks.get(setting) != value]
        return strange(mark, other if "bits" in marks else ["layout"])

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        def read(db: sqlite3.Connection) -> tuple[int | None, list[Found]]:
            db.execute("BEGIN")  # the mark and the members are of one moment
            applied, bits = _applied(db), _bits(db)
            each: dict[int, Found] = {}
            for language, places in packed_buckets.by_language(probes).items():
                banding = self._bandings[language]
                asked = packed_buckets.asked(language, [probes[place] for place in places], banding, bits[language])
                values, lengths = _read(db, asked, packed_buckets.NUMBER_BYTES * banding.max_bucket)
                each.update(zip(places, packed_buckets.found(asked, values, lengths, banding), strict=True))
            db.execute("COMMIT")
            return applied, [each[place] for place in range(len(probes))]

        return await self._connection.do(read)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            mark, bits = _applied(db), _bits(db)
            refuse_gap(mark, since)
            fresh = [change for change in changes if change.seq == 0 or mark is None or change.seq > mark]
            for language in LANGUAGES:
                entering = packed_buckets.entering(language, fresh, self._bandings[language], bits[language])
                db.executemany(APPEND, ((_row(language, bucket), numbers) for bucket, numbers in entering.each()))
            _grow(db, packed_buckets.gained(fresh))
            if applied is not None and (mark is None or applied > mark):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._connection.do(write)

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_buckets", "index_sizes", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            bits = packed_buckets.told(packed_buckets.bits_for(sizes))
            marks = {"ledger": ledger_id, "version": version, **self._layout, "bits": bits}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._connection.do(wipe)

    async def build(self, pages: AsyncIterator[Columns], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index, a transaction for each column, its rows in order."""
        bits, spool = await self._connection.do(_bits), Spool(scratch)
        async for page in pages:
            await asyncio.to_thread(put_aside, spool, page, self._bandings, bits)
        for part in parts_of(spool, self._bandings):
            await self._connection.do(partial(_fill, spool=spool, part=part))
            yield part.stories

    async def sizes(self) -> dict[Language, int]:
        rows = await self._connection.do(lambda db: db.execute("SELECT language, stories FROM index_sizes").fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        def read(db: sqlite3.Connection) -> dict[str, int]:
            bits, sizes = _bits(db), {}
            for language, places in packed_buckets.by_language(sample).items():
                stories = [sample[place] for place in places]
                asked = packed_buckets.asked(language, stories, self._bandings[language], bits[language])
                for bucket, length in zip(asked.buckets.tolist(), _lengths(db, asked), strict=True):
                    sizes[packed_buckets.name(language, bucket)] = length // packed_buckets.NUMBER_BYTES
            return {name: n for name, n in sizes.items() if n}

        return await self._connection.do(read)

    async def trouble(self) -> str | None:
        said = await self._connection.do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if said != "ok":
            return str(said)
        return packed_buckets.crowded(await self.sizes(), await self._connection.do(_bits))

    async def touch(self) -> None:
        await self._connection.do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._connection.close()


def _applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    applied: int | None = row[0] if row else None
    return applied


def _bits(db: sqlite3.Connection) -> packed_buckets.Bits:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
    return packed_buckets.read(row and row[0])


def _fill(db: sqlite3.Connection, spool: Spool, part: Part) -> None:
    db.execute("BEGIN IMMEDIATE")
    rows = ((_row(part.language, bucket), numbers) for bucket, numbers in part.buckets(spool))
    db.executemany(APPEND, rows)  # a probe of the doctor's may be there
    _grow(db, {part.language: part.stories})
    db.execute("COMMIT")


def _grow(db: sqlite3.Connection, gained: Mapping[Language, int]) -> None:
    db.executemany(
        "INSERT INTO index_sizes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET stories = stories + ?2", gained.items()
    )


def _row(language: Language, bucket: int) -> int:
    return NUMBER_OF[language] << COLUMN_BITS + BAND_BITS | bucket


def _rows(asked: packed_buckets.Asked) -> str:
    return json.dumps([_row(asked.language, bucket) for bucket in asked.buckets.tolist()])


def _lengths(db: sqlite3.Connection, asked: packed_buckets.Asked) -> list[int]:
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (_rows(asked),),
    )
    return [length for (length,) in rows]


def _read(db: sqlite3.Connection, asked: packed_buckets.Asked, most: int) -> tuple[list[bytes], list[int]]:
    """What the buckets hold, the last `most` bytes of it, and how long it is."""
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0), CASE WHEN length(numbers) <= ? THEN numbers END"
        " FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (most, _rows(asked)),
    )
    values, lengths = [], []
    for bucket, (length, numbers) in zip(asked.buckets.tolist(), rows.fetchall(), strict=True):
        lengths.append(length)
        if length > most:  # SQL would read it whole, whatever part was asked for
            row = _row(asked.language, bucket)
            with db.blobopen("index_buckets", "numbers", row, readonly=True) as blob:
                blob.seek(length - most)
                values.append(blob.read())
        elif length:
            values.append(numbers)
    return values, lengths
