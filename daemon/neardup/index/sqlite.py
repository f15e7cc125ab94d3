"""The embedded index: packed buckets (see neardup.index.packed_buckets) in tables of the ledger's file.

It has its own connection, on its own thread.  It records the Hamming distances, bands and widths that decide which
buckets a story falls into; a change of these needs a rebuild.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from neardup.core.candidates.banding import BAND_BITS
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.errors import Fatal
from neardup.index import packed_buckets
from neardup.index.bulk import Spool, SpooledColumn, spool_page, spooled_columns
from neardup.index.positions import refuse_gap, setting_record, with_other_settings
from neardup.index.protocol import Bandings, Bucket, IndexPosition, LookupResult
from neardup.records import LANGUAGES, NUMBER_OF, Banded, Change, Language
from neardup.sqlite import ThreadedConnection, failure

SCHEMA = """
CREATE TABLE IF NOT EXISTS index_marks (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_sizes (language TEXT PRIMARY KEY, stories INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS index_buckets (bucket INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
"""
APPEND = (
    "INSERT INTO index_buckets VALUES (?, ?)"  # || yields text, hence the cast
    " ON CONFLICT DO UPDATE SET numbers = CAST(numbers || excluded.numbers AS BLOB)"
)
COLUMN_BITS = 6  # a row's key consists of language, column and value
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
        except sqlite3.Error as error:
            raise failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error
        self._connection = ThreadedConnection(db, "the index failed")

    async def position(self) -> IndexPosition:
        marks = dict(await self._connection.do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        position = IndexPosition(marks.get("ledger"), marks.get("version"), marks.get("applied"))
        other = [f"detection.{setting}" for setting, value in self._layout.items() if marks.get(setting) != value]
        return with_other_settings(position, other if "bits" in marks else ["layout"])

    async def lookup(self, probes: Sequence[Banded]) -> tuple[int | None, list[LookupResult]]:
        def look_up(db: sqlite3.Connection) -> tuple[int | None, list[LookupResult]]:
            db.execute("BEGIN")  # one snapshot of the position and the buckets
            applied, bits = _applied(db), _bits(db)
            results: dict[int, LookupResult] = {}
            for language, positions in packed_buckets.positions_by_language(probes).items():
                banding, stories = self._bandings[language], [probes[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, banding, bits[language])
                values, lengths = _read(db, request, packed_buckets.NUMBER_BYTES * banding.max_bucket)
                found = packed_buckets.lookup_results(request, values, lengths, banding)
                results.update(zip(positions, found, strict=True))
            db.execute("COMMIT")
            return applied, [results[position] for position in range(len(probes))]

        return await self._connection.do(look_up)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            before, bits = _applied(db), _bits(db)
            refuse_gap(before, since)
            new = [change for change in changes if change.seq == 0 or before is None or change.seq > before]
            for language in LANGUAGES:
                additions = packed_buckets.additions(language, new, self._bandings[language], bits[language])
                db.executemany(APPEND, ((_row(language, bucket), numbers) for bucket, numbers in additions.by_bucket()))
            _grow(db, packed_buckets.growth(new))
            if applied is not None and (before is None or applied > before):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._connection.do(write)

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_buckets", "index_sizes", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            bits = packed_buckets.bits_record(packed_buckets.bits_for(sizes))
            marks = {"ledger": ledger_id, "version": version, **self._layout, "bits": bits}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._connection.do(wipe)

    async def build(self, pages: AsyncIterator[FingerprintArrays], scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index in one transaction per column, its rows in ascending order."""
        bits, spool = await self._connection.do(_bits), Spool(scratch)
        async for page in pages:
            await asyncio.to_thread(spool_page, spool, page, self._bandings, bits)
        for column in spooled_columns(spool, self._bandings):
            await self._connection.do(partial(_fill, spool=spool, column=column))
            yield column.stories

    async def story_counts(self) -> dict[Language, int]:
        rows = await self._connection.do(lambda db: db.execute("SELECT language, stories FROM index_sizes").fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[Banded]) -> dict[Bucket, int]:
        def read(db: sqlite3.Connection) -> dict[Bucket, int]:
            bits, sizes = _bits(db), {}
            for language, positions in packed_buckets.positions_by_language(sample).items():
                stories = [sample[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, self._bandings[language], bits[language])
                for bucket, length in zip(request.buckets.tolist(), _lengths(db, request), strict=True):
                    if length:
                        record = packed_buckets.bucket_record(language, bucket)
                        sizes[record] = length // packed_buckets.NUMBER_BYTES
            return sizes

        return await self._connection.do(read)

    async def problem(self) -> str | None:
        checked = await self._connection.do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if checked != "ok":
            return str(checked)
        return packed_buckets.overfull(await self.story_counts(), await self._connection.do(_bits))

    async def check_writable(self) -> None:
        await self._connection.do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._connection.close()


def _applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    applied: int | None = row[0] if row else None
    return applied


def _bits(db: sqlite3.Connection) -> packed_buckets.Bits:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
    return packed_buckets.recorded_bits(row and row[0])


def _fill(db: sqlite3.Connection, spool: Spool, column: SpooledColumn) -> None:
    db.execute("BEGIN IMMEDIATE")
    rows = ((_row(column.language, bucket), numbers) for bucket, numbers in column.buckets(spool))
    db.executemany(APPEND, rows)  # appended, since the buckets may hold a probe of `neardup doctor`
    _grow(db, {column.language: column.stories})
    db.execute("COMMIT")


def _grow(db: sqlite3.Connection, growth: Mapping[Language, int]) -> None:
    db.executemany(
        "INSERT INTO index_sizes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET stories = stories + ?2", growth.items()
    )


def _row(language: Language, bucket: int) -> int:
    return NUMBER_OF[language] << COLUMN_BITS + BAND_BITS | bucket


def _rows(request: packed_buckets.LookupRequest) -> str:
    return json.dumps([_row(request.language, bucket) for bucket in request.buckets.tolist()])


def _lengths(db: sqlite3.Connection, request: packed_buckets.LookupRequest) -> list[int]:
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (_rows(request),),
    )
    return [length for (length,) in rows]


def _read(db: sqlite3.Connection, request: packed_buckets.LookupRequest, most: int) -> tuple[list[bytes], list[int]]:
    """The last `most` bytes of each bucket that is not empty, and the whole length of each bucket."""
    rows = db.execute(
        "SELECT coalesce(length(numbers), 0), CASE WHEN length(numbers) <= ? THEN numbers END"
        " FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (most, _rows(request)),
    )
    values, lengths = [], []
    for bucket, (length, numbers) in zip(request.buckets.tolist(), rows.fetchall(), strict=True):
        lengths.append(length)
        if length > most:  # substr() would read the whole blob
            row = _row(request.language, bucket)
            with db.blobopen("index_buckets", "numbers", row, readonly=True) as blob:
                blob.seek(length - most)
                values.append(blob.read())
        elif length:
            values.append(numbers)
    return values, lengths
