"""The embedded index, packed (see neardup.index.packed_buckets): tables in the ledger's file, on a connection
and a thread of its own.

The distances, bands and widths that decide where a story stands are on record; others need a rebuild.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from neardup.core.candidates.banding import BAND_BITS
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.errors import Fatal
from neardup.index import packed_buckets
from neardup.index.bulk import Part, Spool, parts_of, put_aside
from neardup.index.marks import agrees, by_name, extended, layout, refuse_gap, strange
from neardup.index.protocol import Bandings, Found, Mark
from neardup.records import Banded, Change, Language
from neardup.sqlite import failure

T = TypeVar("T")
SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_languages
    (number INTEGER PRIMARY KEY, language TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS index_buckets (bucket INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
"""
APPEND = (
    "INSERT INTO index_buckets VALUES (?, ?)"  # || makes a text of them
    " ON CONFLICT DO UPDATE SET numbers = CAST(numbers || excluded.numbers AS BLOB)"
)
COLUMN_BITS = 6  # a row's bucket is the language's number here, column and value side by side
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
            _register(self._db, bandings)
        except sqlite3.Error as error:
            raise failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error

    async def mark(self) -> Mark:
        marks = dict(await self._do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        mark = Mark(marks.get("ledger"), marks.get("version"), marks.get("applied"))
        other = [f"detection.{key}" for key, value in self._layout.items() if not agrees(marks.get(key), value)]
        return strange(mark, other if "bits" in marks else ["layout"])

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[Found]]:
        def read(db: sqlite3.Connection) -> tuple[int | None, list[Found]]:
            db.execute("BEGIN")  # the mark and the members are of one moment
            applied, bits, numbers = _applied(db), self._bits(db), _numbers(db)
            each: dict[int, Found] = {}
            for language, places in packed_buckets.by_language(probes).items():
                banding = self._bandings[language]
                asked = packed_buckets.asked(language, [probes[place] for place in places], banding, bits[language])
                values, lengths = _read(db, _rows(numbers, asked), packed_buckets.NUMBER_BYTES * banding.max_bucket)
                each.update(zip(places, packed_buckets.found(asked, values, lengths, banding), strict=True))
            db.execute("COMMIT")
            return applied, [each[place] for place in range(len(probes))]

        return await self._do(read)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            mark, bits, number_of = _applied(db), self._bits(db), _numbers(db)
            refuse_gap(mark, since)
            fresh = [change for change in changes if change.seq == 0 or mark is None or change.seq > mark]
            for language in self._bandings:
                entering = packed_buckets.entering(language, fresh, self._bandings[language], bits[language])
                db.executemany(
                    APPEND, ((_row(number_of[language], bucket), numbers) for bucket, numbers in entering.each())
                )
            _grow(db, packed_buckets.gained(fresh))
            if applied is not None and (mark is None or applied > mark):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._do(write)

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_buckets", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            db.execute("UPDATE index_languages SET stories = 0")
            bits = by_name(packed_buckets.bits_for(sizes, self._bandings))
            marks = {"ledger": ledger_id, "version": version, **self._layout, "bits": bits}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._do(wipe)

    async def admit(self, version: str) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            marks = dict(db.execute("SELECT key, value FROM index_marks"))
            record = {key: extended(marks[key], value) for key, value in self._layout.items()}
            record |= {"version": version, "bits": by_name(self._bits(db))}
            db.executemany("INSERT OR REPLACE INTO index_marks VALUES (?, ?)", record.items())
            db.execute("COMMIT")

        await self._do(write)

    async def build(self, pages: AsyncIterator[Columns], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index, a transaction for each column, its rows in order."""
        bits, spool = await self._do(self._bits), Spool(scratch)
        async for page in pages:
            await asyncio.to_thread(put_aside, spool, page, self._bandings, bits)
        for part in parts_of(spool, self._bandings):
            await self._do(partial(_fill, spool=spool, part=part))
            yield part.stories

    async def sizes(self) -> dict[Language, int]:
        rows = await self._do(lambda db: db.execute("SELECT language, stories FROM index_languages").fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[str, int]:
        def read(db: sqlite3.Connection) -> dict[str, int]:
            bits, numbers, sizes = self._bits(db), _numbers(db), {}
            for language, places in packed_buckets.by_language(sample).items():
                stories = [sample[place] for place in places]
                asked = packed_buckets.asked(language, stories, self._bandings[language], bits[language])
                for bucket, length in zip(asked.buckets.tolist(), _lengths(db, _rows(numbers, asked)), strict=True):
                    sizes[packed_buckets.name(language, bucket)] = length // packed_buckets.NUMBER_BYTES
            return {name: n for name, n in sizes.items() if n}

        return await self._do(read)

    async def trouble(self) -> str | None:
        said = await self._do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if said != "ok":
            return str(said)
        return packed_buckets.crowded(await self.sizes(), await self._do(self._bits))

    async def touch(self) -> None:
        await self._do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._db.close()

    def _bits(self, db: sqlite3.Connection) -> packed_buckets.Bits:
        row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
        return packed_buckets.recorded(row and row[0], self._bandings)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def call() -> T:
            try:
                return _whole(self._db, work)
            except sqlite3.Error as error:
                raise failure(error, "the index failed") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def _whole(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """What `work` gives; whatever it raises, the transaction that it began is undone."""
    try:
        return work(db)
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    applied: int | None = row[0] if row else None
    return applied


def _register(db: sqlite3.Connection, languages: Iterable[Language]) -> None:
    """Give the languages that are new the next numbers; numbers stay."""
    known = _numbers(db)
    new = [language for language in languages if language not in known]
    if new:
        numbered = enumerate(new, max(known.values(), default=-1) + 1)
        db.executemany("INSERT OR IGNORE INTO index_languages (number, language) VALUES (?, ?)", numbered)


def _numbers(db: sqlite3.Connection) -> dict[Language, int]:
    return dict(db.execute("SELECT language, number FROM index_languages"))


def _fill(db: sqlite3.Connection, spool: Spool, part: Part) -> None:
    db.execute("BEGIN IMMEDIATE")
    number = _numbers(db)[part.language]
    rows = ((_row(number, bucket), numbers) for bucket, numbers in part.buckets(spool))
    db.executemany(APPEND, rows)  # a probe of the doctor's may be there
    _grow(db, {part.language: part.stories})
    db.execute("COMMIT")


def _grow(db: sqlite3.Connection, gained: Mapping[Language, int]) -> None:
    db.executemany("UPDATE index_languages SET stories = stories + ?2 WHERE language = ?1", gained.items())


def _row(language: int, bucket: int) -> int:
    return language << COLUMN_BITS + BAND_BITS | bucket


def _rows(numbers: Mapping[Language, int], asked: packed_buckets.Asked) -> list[int]:
    return [_row(numbers[asked.language], bucket) for bucket in asked.buckets.tolist()]


def _lengths(db: sqlite3.Connection, buckets: Sequence[int]) -> list[int]:
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (json.dumps(buckets),),
    )
    return [length for (length,) in rows]


def _read(db: sqlite3.Connection, buckets: Sequence[int], most: int) -> tuple[list[bytes], list[int]]:
    """What the buckets hold, the last `most` bytes of it, and how long it is."""
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0), CASE WHEN length(numbers) <= ? THEN numbers END"
        " FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (most, json.dumps(buckets)),
    )
    values, lengths = [], []
    for bucket, (length, numbers) in zip(buckets, rows.fetchall(), strict=True):
        lengths.append(length)
        if length > most:  # SQL would read it whole, whatever part was asked for
            with db.blobopen("index_buckets", "numbers", bucket, readonly=True) as blob:
                blob.seek(length - most)
                values.append(blob.read())
        elif length:
            values.append(numbers)
    return values, lengths
