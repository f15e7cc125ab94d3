"""The embedded index: packed buckets (see neardup.index.packed_buckets) in tables of the ledger's file.

It has its own connection, on its own thread.  It records the Hamming distances, bands and widths that decide which
buckets a story falls into; a change of these needs a rebuild.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from neardup.core.candidates.banding import BAND_BITS
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.errors import Fatal
from neardup.index import packed_buckets
from neardup.index.bulk import Spool, SpooledColumn, spool_page, spooled_columns
from neardup.index.positions import (
    extended_record,
    record_by_language,
    refuse_gap,
    same_setting,
    setting_record,
    with_other_settings,
)
from neardup.index.protocol import Bandings, Bucket, IndexPosition, LookupResult
from neardup.records import BandedFingerprint, Change, Language
from neardup.sqlite import ThreadedConnection, failure

SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_languages
    (number INTEGER PRIMARY KEY, language TEXT NOT NULL UNIQUE, stories INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS index_buckets (bucket INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
"""
APPEND = (
    "INSERT INTO index_buckets VALUES (?, ?)"  # || yields text, hence the cast
    " ON CONFLICT DO UPDATE SET numbers = CAST(numbers || excluded.numbers AS BLOB)"
)
COLUMN_BITS = 6  # a row's key consists of the language's number in this index, column and value
BUSY_SECONDS = 30


class SqliteIndex:
    """The `Index` in the SQLite file at `path`, with its optional protocols.  Raises Fatal or Transient on opening."""

    def __init__(self, path: Path, bandings: Bandings) -> None:
        self._bandings = bandings
        self._layout = {
            "hamming": setting_record(bandings, lambda banding: banding.hamming),
            "bands": setting_record(bandings, lambda banding: banding.bands),
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # the ledger replays what a power cut loses
            db.executescript(SCHEMA)
            _register(db, bandings)
        except sqlite3.Error as error:
            raise failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error
        self._connection = ThreadedConnection(db, "the index failed")

    async def position(self) -> IndexPosition:
        marks = dict(await self._connection.do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        position = IndexPosition(marks.get("ledger"), marks.get("version"), marks.get("applied"))
        other = [f"detection.{key}" for key, value in self._layout.items() if not same_setting(marks.get(key), value)]
        return with_other_settings(position, other if "bits" in marks else ["layout"])

    async def lookup(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        def look_up(db: sqlite3.Connection) -> tuple[int | None, list[LookupResult]]:
            db.execute("BEGIN")  # one snapshot of the position and the buckets
            applied, bits, language_numbers = _applied(db), self._bits(db), _numbers(db)
            results: dict[int, LookupResult] = {}
            for language, positions in packed_buckets.positions_by_language(probes).items():
                banding, stories = self._bandings[language], [probes[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, banding, bits[language])
                rows = _rows(language_numbers, request)
                values, lengths = _read(db, rows, packed_buckets.NUMBER_BYTES * banding.max_bucket)
                found = packed_buckets.lookup_results(request, values, lengths, banding)
                results.update(zip(positions, found, strict=True))
            db.execute("COMMIT")
            return applied, [results[position] for position in range(len(probes))]

        return await self._connection.do(look_up)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            before, bits, language_numbers = _applied(db), self._bits(db), _numbers(db)
            refuse_gap(before, since)
            new = [change for change in changes if change.seq == 0 or before is None or change.seq > before]
            for language, banding in self._bandings.items():
                additions = packed_buckets.additions(language, new, banding, bits[language])
                number = language_numbers[language]
                db.executemany(APPEND, ((_row(number, bucket), numbers) for bucket, numbers in additions.by_bucket()))
            _grow(db, packed_buckets.growth(new))
            if applied is not None and (before is None or applied > before):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._connection.do(write)

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_buckets", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            db.execute("UPDATE index_languages SET stories = 0")
            bits = record_by_language(packed_buckets.bits_for(sizes, self._bandings))
            marks = {"ledger": ledger_id, "version": version, **self._layout, "bits": bits}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._connection.do(wipe)

    async def admit(self, version: str) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            marks = dict(db.execute("SELECT key, value FROM index_marks"))
            record = {key: extended_record(marks.get(key), value) for key, value in self._layout.items()}
            record |= {"version": version, "bits": record_by_language(self._bits(db))}
            db.executemany("INSERT OR REPLACE INTO index_marks VALUES (?, ?)", record.items())
            db.execute("COMMIT")

        await self._connection.do(write)

    async def build(self, pages: AsyncIterator[FingerprintArrays], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index in one transaction per column, its rows in ascending order."""
        bits, spool = await self._connection.do(self._bits), Spool(scratch)
        async for page in pages:
            await asyncio.to_thread(spool_page, spool, page, self._bandings, bits)
        for column in spooled_columns(spool, self._bandings):
            await self._connection.do(partial(_fill, spool=spool, column=column))
            yield column.stories

    async def story_counts(self) -> dict[Language, int]:
        query = "SELECT language, stories FROM index_languages"
        rows = await self._connection.do(lambda db: db.execute(query).fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        def read(db: sqlite3.Connection) -> dict[Bucket, int]:
            bits, language_numbers, sizes = self._bits(db), _numbers(db), {}
            for language, positions in packed_buckets.positions_by_language(sample).items():
                stories = [sample[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, self._bandings[language], bits[language])
                lengths = _lengths(db, _rows(language_numbers, request))
                for bucket, length in zip(request.buckets.tolist(), lengths, strict=True):
                    if length:
                        record = packed_buckets.bucket_record(language, bucket)
                        sizes[record] = length // packed_buckets.NUMBER_BYTES
            return sizes

        return await self._connection.do(read)

    async def problem(self) -> str | None:
        checked = await self._connection.do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if checked != "ok":
            return str(checked)
        return packed_buckets.overfull(await self.story_counts(), await self._connection.do(self._bits))

    async def check_writable(self) -> None:
        await self._connection.do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._connection.close()

    def _bits(self, db: sqlite3.Connection) -> packed_buckets.Bits:
        row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
        return packed_buckets.recorded_bits(row and row[0], self._bandings)


def _applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    applied: int | None = row[0] if row else None
    return applied


def _register(db: sqlite3.Connection, languages: Iterable[Language]) -> None:
    """Give each new language the next number; numbers never change."""
    known = _numbers(db)
    if new := [language for language in languages if language not in known]:
        numbered = enumerate(new, max(known.values(), default=-1) + 1)
        db.executemany("INSERT OR IGNORE INTO index_languages (number, language) VALUES (?, ?)", numbered)


def _numbers(db: sqlite3.Connection) -> dict[Language, int]:
    return dict(db.execute("SELECT language, number FROM index_languages"))


def _fill(db: sqlite3.Connection, spool: Spool, column: SpooledColumn) -> None:
    db.execute("BEGIN IMMEDIATE")
    number = _numbers(db)[column.language]
    rows = ((_row(number, bucket), numbers) for bucket, numbers in column.buckets(spool))
    db.executemany(APPEND, rows)  # appended, since the buckets may hold a probe of `neardup doctor`
    _grow(db, {column.language: column.stories})
    db.execute("COMMIT")


def _grow(db: sqlite3.Connection, growth: Mapping[Language, int]) -> None:
    db.executemany("UPDATE index_languages SET stories = stories + ?2 WHERE language = ?1", growth.items())


def _row(language_number: int, bucket: int) -> int:
    return language_number << COLUMN_BITS + BAND_BITS | bucket


def _rows(language_numbers: Mapping[Language, int], request: packed_buckets.LookupRequest) -> list[int]:
    number = language_numbers[request.language]
    return [_row(number, bucket) for bucket in request.buckets.tolist()]


def _lengths(db: sqlite3.Connection, rows: Sequence[int]) -> list[int]:
    lengths = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (json.dumps(rows),),
    )
    return [length for (length,) in lengths]


def _read(db: sqlite3.Connection, rows: Sequence[int], most: int) -> tuple[list[bytes], list[int]]:
    """The last `most` bytes of each bucket that is not empty, and the whole length of each bucket."""
    buckets = db.execute(
        "SELECT coalesce(length(numbers), 0), CASE WHEN length(numbers) <= ? THEN numbers END"
        " FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (most, json.dumps(rows)),
    )
    values, lengths = [], []
    for row, (length, numbers) in zip(rows, buckets.fetchall(), strict=True):
        lengths.append(length)
        if length > most:  # substr() would read the whole blob
            with db.blobopen("index_buckets", "numbers", row, readonly=True) as blob:
                blob.seek(length - most)
                values.append(blob.read())
        elif length:
            values.append(numbers)
    return values, lengths
