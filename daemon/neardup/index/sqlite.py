"""The embedded index: packed buckets (see neardup.index.packed_buckets) in tables of the ledger's file.

Each bucket is a row, whose key consists of the language's number in this index, the column and the value.  The index
has its own connection, on its own thread.  It records the Hamming distances, bands and widths that decide which buckets
a story falls into; a change of these needs a rebuild.  A row that holds what neardup did not write there raises
IndexDamaged.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from neardup.core.candidates.banding import BAND_BITS
from neardup.errors import Fatal, IndexDamaged
from neardup.index import packed_buckets
from neardup.index.packed_buckets import Entry
from neardup.index.protocol import (
    Bandings,
    Bucket,
    IndexPosition,
    LookupResult,
    extend_record,
    is_same_setting,
    mark_other_settings,
    parse_number,
    record_by_language,
    record_packed_settings,
    refuse_gap,
    select_new,
)
from neardup.records import BandedFingerprint, Change, Language
from neardup.sqlite import FAILURES, ThreadedConnection, explain_failure

if TYPE_CHECKING:
    from neardup.core.candidates.banding import FingerprintArrays


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
COLUMN_BITS = 6  # of a row's key
BUSY_SECONDS = 30
P = ParamSpec("P")
T = TypeVar("T")


class SqliteIndex:
    """The `Index` in the SQLite file at `path`.  Raises Fatal or Transient on opening."""

    def __init__(self, path: Path, bandings: Bandings) -> None:
        self._bandings = bandings
        self._settings = record_packed_settings(bandings)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")  # the ledger replays what a power cut loses
            db.executescript(SCHEMA)
            _register_languages(db, bandings)
        except FAILURES as error:
            raise explain_failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error
        self._connection = ThreadedConnection(db, "the index failed")

    async def read_position(self) -> IndexPosition:
        marks = dict(await self._connection.do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        ledger, version = (value if isinstance(value, str) else None for value in map(marks.get, ("ledger", "version")))
        position = IndexPosition(ledger, version, parse_number(marks.get("applied")))
        try:
            packed_buckets.parse_bits(_record_text(marks["bits"]), self._bandings)
            other = [
                key for key, value in self._settings.items() if not is_same_setting(_record_text(marks[key]), value)
            ]
        except (KeyError, IndexDamaged):
            return replace(position, applied=None)
        if ledger is None or version is None:
            return replace(position, applied=None)
        return mark_other_settings(position, [f"detection.{key}" for key in other])

    async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        def look_up(db: sqlite3.Connection) -> tuple[int | None, list[LookupResult]]:
            db.execute("BEGIN")  # one snapshot of the position and the buckets
            applied, bits, language_numbers = _read_applied(db), self._bits(db), _read_language_numbers(db)
            results: dict[int, LookupResult] = {}
            for language, places in packed_buckets.group_places(probes).items():
                banding, stories = self._bandings[language], [probes[place] for place in places]
                request = packed_buckets.make_request(language, stories, banding, bits[language])
                rows = _make_row_keys(language_numbers, request)
                found = packed_buckets.join_results(request, _read_buckets(db, rows), banding)
                results.update(zip(places, found, strict=True))
            db.execute("COMMIT")
            return applied, [results[place] for place in range(len(probes))]

        return await self._do(look_up)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            before, bits, language_numbers = _read_applied(db), self._bits(db), _read_language_numbers(db)
            refuse_gap(before, since)
            new = select_new(changes, before)
            for language, banding in self._bandings.items():
                additions = packed_buckets.make_additions(language, new, banding, bits[language])
                _append(db, language_numbers[language], additions)
            _count_growth(db, packed_buckets.count_growth(new))
            if applied is not None and (before is None or applied > before):
                db.execute("INSERT OR REPLACE INTO index_marks VALUES ('applied', ?)", (applied,))
            db.execute("COMMIT")

        await self._do(write)

    async def clear(self, ledger_id: str, version: str, sizes: Mapping[Language, int] = {}) -> None:
        def wipe(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("index_buckets", "index_marks"):
                db.execute(f"DELETE FROM {table}")
            db.execute("UPDATE index_languages SET stories = 0")
            bits = record_by_language(packed_buckets.choose_bits(sizes, self._bandings))
            marks = {"ledger": ledger_id, "version": version, **self._settings, "bits": bits}
            db.executemany("INSERT INTO index_marks VALUES (?, ?)", marks.items())
            db.execute("COMMIT")

        await self._connection.do(wipe)

    async def admit(self, version: str) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            marks = dict(db.execute("SELECT key, value FROM index_marks"))
            record = {key: extend_record(marks.get(key), value) for key, value in self._settings.items()}
            record |= {"version": version, "bits": record_by_language(self._bits(db))}
            db.executemany("INSERT OR REPLACE INTO index_marks VALUES (?, ?)", record.items())
            db.execute("COMMIT")

        await self._connection.do(write)

    async def build(self, batches: "AsyncIterator[FingerprintArrays]", scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index in one transaction per column, its rows in ascending order."""
        bits, spool = await self._do(self._bits), packed_buckets.Spool(scratch)
        async for batch in batches:
            await asyncio.to_thread(packed_buckets.spool_batch, spool, batch, self._bandings, bits)
        for column in packed_buckets.list_columns(spool, self._bandings):
            await self._connection.do(partial(_fill_column, spool=spool, column=column))
            yield column.stories

    async def count_stories(self) -> dict[Language, int]:
        query = "SELECT language, stories FROM index_languages"
        rows = await self._connection.do(lambda db: db.execute(query).fetchall())
        return {Language(language): n for language, n in rows if n}

    async def read_bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        def read(db: sqlite3.Connection) -> dict[Bucket, int]:
            bits, language_numbers, sizes = self._bits(db), _read_language_numbers(db), {}
            for language, places in packed_buckets.group_places(sample).items():
                stories = [sample[place] for place in places]
                request = packed_buckets.make_request(language, stories, self._bandings[language], bits[language])
                lengths = _read_lengths(db, _make_row_keys(language_numbers, request))
                for bucket, length in zip(request.buckets.tolist(), lengths, strict=True):
                    if length:
                        record = packed_buckets.make_bucket(language, bucket)
                        sizes[record] = length // packed_buckets.NUMBER_BYTES
            return sizes

        return await self._do(read)

    async def count_missing(self, stories: Sequence[Change]) -> list[int]:
        counts = [0] * len(stories)
        for _, entries in await self._do(self._lacking, stories):
            for story, _ in entries:
                counts[story] += 1
        return counts

    async def restore(self, stories: Sequence[Change]) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            language_numbers = _read_language_numbers(db)
            for language, entries in self._lacking(db, stories):
                _append(db, language_numbers[language], packed_buckets.make_missing_additions(entries, stories))
            db.execute("COMMIT")

        await self._do(write)

    def _lacking(self, db: sqlite3.Connection, stories: Sequence[Change]) -> list[tuple[Language, list[Entry]]]:
        """The entries that buckets lack of these stories, for some stories of a language at a time."""
        bits, language_numbers, lacking = self._bits(db), _read_language_numbers(db), []
        for inserted in packed_buckets.group_inserted(stories):
            language = inserted.language
            banding = self._bandings[language]
            request = packed_buckets.make_request(language, inserted.fingerprints, banding, bits[language])
            contents = _read_buckets(db, _make_row_keys(language_numbers, request))
            lacking.append((language, packed_buckets.find_lacking(request, contents, inserted, stories)))
        return lacking

    async def find_problem(self) -> str | None:
        checked = await self._connection.do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if checked != "ok":
            return str(checked)
        return packed_buckets.describe_overfull(await self.count_stories(), await self._do(self._bits))

    async def check_writable(self) -> None:
        await self._connection.do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._connection.close()

    def _bits(self, db: sqlite3.Connection) -> packed_buckets.Bits:
        row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
        return packed_buckets.parse_bits(row and _record_text(row[0]), self._bandings)

    async def _do(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As the connection's `do`; if the index is damaged, it then has no position, so that it is rebuilt."""
        try:
            return await self._connection.do(work, *args, **kwargs)
        except IndexDamaged:
            await self._connection.do(lambda db: db.execute("DELETE FROM index_marks WHERE key = 'applied'"))
            raise


def _read_applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    return parse_number(row[0]) if row else None


def _record_text(value: object) -> str:
    """A record; raises IndexDamaged if it is no text."""
    if not isinstance(value, str):
        raise IndexDamaged("the index is damaged: a record of a setting is no text")
    return value


def _register_languages(db: sqlite3.Connection, languages: Iterable[Language]) -> None:
    """Give each new language the next number; numbers never change."""
    known = _read_language_numbers(db)
    if new := [language for language in languages if language not in known]:
        numbered = enumerate(new, max(known.values(), default=-1) + 1)
        db.executemany("INSERT OR IGNORE INTO index_languages (number, language) VALUES (?, ?)", numbered)


def _read_language_numbers(db: sqlite3.Connection) -> dict[Language, int]:
    return dict(db.execute("SELECT language, number FROM index_languages"))


def _fill_column(db: sqlite3.Connection, spool: packed_buckets.Spool, column: packed_buckets.SpooledColumn) -> None:
    db.execute("BEGIN IMMEDIATE")
    number = _read_language_numbers(db)[column.language]
    written = ((_make_row_key(number, bucket), added) for bucket, added in column.buckets(spool))
    db.executemany(APPEND, written)  # appended, since the buckets may hold a probe of `neardup doctor`
    _count_growth(db, {column.language: column.stories})
    db.execute("COMMIT")


def _append(db: sqlite3.Connection, language_number: int, additions: packed_buckets.Additions) -> None:
    """Add numbers to the buckets of a language, within the caller's transaction."""
    added = ((_make_row_key(language_number, bucket), numbers) for bucket, numbers in additions.by_bucket())
    db.executemany(APPEND, added)


def _count_growth(db: sqlite3.Connection, growth: Mapping[Language, int]) -> None:
    db.executemany("UPDATE index_languages SET stories = stories + ?2 WHERE language = ?1", growth.items())


def _make_row_key(language_number: int, bucket: int) -> int:
    return language_number << COLUMN_BITS + BAND_BITS | bucket


def _make_row_keys(number_of_language: Mapping[Language, int], request: packed_buckets.LookupRequest) -> list[int]:
    number = number_of_language[request.language]
    return [_make_row_key(number, bucket) for bucket in request.buckets.tolist()]


def _read_lengths(db: sqlite3.Connection, rows: Sequence[int]) -> list[int]:
    lengths = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (json.dumps(rows),),
    )
    return [length for (length,) in lengths]


def _read_buckets(db: sqlite3.Connection, rows: Sequence[int]) -> list[bytes | None]:
    """The contents of each bucket; None for an empty one."""
    query = "SELECT numbers FROM json_each(?) LEFT JOIN index_buckets ON bucket = value"
    contents = [numbers for (numbers,) in db.execute(query, (json.dumps(rows),))]
    if not set(map(type, contents)) <= {bytes, NoneType}:
        raise IndexDamaged("the index is damaged: a bucket is no blob")
    return contents
