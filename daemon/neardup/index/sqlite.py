"""The embedded index: packed buckets (see neardup.index.packed_buckets) in tables of the ledger's file.

It has its own connection, on its own thread.  It records the Hamming distances, bands and widths that decide which
buckets a story falls into; a change of these needs a rebuild.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from neardup.errors import Fatal, IndexDamaged
from neardup.index import packed_buckets
from neardup.index import sqlite_tables as tables
from neardup.index.bulk import Spool, spool_page, spooled_columns
from neardup.index.packed_entries import STORIES_PER_READ, Entry, additions_of, by_language, lacking
from neardup.index.positions import (
    extended_record,
    number_of,
    record_by_language,
    refuse_gap,
    same_setting,
    setting_record,
    with_other_settings,
)
from neardup.index.protocol import Bandings, Bucket, IndexPosition, LookupResult
from neardup.records import BandedFingerprint, Change, Language
from neardup.sqlite import FAILURES, ThreadedConnection, failure

if TYPE_CHECKING:
    from neardup.core.candidates.fingerprint_arrays import FingerprintArrays

BUSY_SECONDS = 30
P = ParamSpec("P")
T = TypeVar("T")


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
            db.executescript(tables.SCHEMA)
            tables.register(db, bandings)
        except FAILURES as error:
            raise failure(error, f"cannot open the index in {path}") from error
        except OSError as error:
            raise Fatal(f"cannot open the index in {path}: {error}") from error
        self._connection = ThreadedConnection(db, "the index failed")

    async def position(self) -> IndexPosition:
        marks = dict(await self._connection.do(lambda db: db.execute("SELECT key, value FROM index_marks").fetchall()))
        ledger, version = (value if isinstance(value, str) else None for value in map(marks.get, ("ledger", "version")))
        position = IndexPosition(ledger, version, number_of(marks.get("applied")))
        try:
            packed_buckets.recorded_bits(tables.text(marks["bits"]), self._bandings)
            other = [key for key, value in self._layout.items() if not same_setting(tables.text(marks[key]), value)]
        except (KeyError, IndexDamaged):
            return replace(position, applied=None)
        if ledger is None or version is None:
            return replace(position, applied=None)
        return with_other_settings(position, [f"detection.{key}" for key in other])

    async def lookup(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
        def look_up(db: sqlite3.Connection) -> tuple[int | None, list[LookupResult]]:
            db.execute("BEGIN")  # one snapshot of the position and the buckets
            applied, bits, language_numbers = tables.applied(db), self._bits(db), tables.language_numbers(db)
            results: dict[int, LookupResult] = {}
            for language, positions in packed_buckets.positions_by_language(probes).items():
                banding, stories = self._bandings[language], [probes[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, banding, bits[language])
                rows = tables.rows(language_numbers, request)
                values, lengths = tables.read(db, rows, packed_buckets.NUMBER_BYTES * banding.max_bucket)
                found = packed_buckets.lookup_results(request, values, lengths, banding)
                results.update(zip(positions, found, strict=True))
            db.execute("COMMIT")
            return applied, [results[position] for position in range(len(probes))]

        return await self._do(look_up)

    async def apply(self, changes: Sequence[Change], applied: int | None, since: int | None = None) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            before, bits, language_numbers = tables.applied(db), self._bits(db), tables.language_numbers(db)
            refuse_gap(before, since)
            new = [change for change in changes if change.seq == 0 or before is None or change.seq > before]
            for language, banding in self._bandings.items():
                additions = packed_buckets.additions(language, new, banding, bits[language])
                number = language_numbers[language]
                tables.append(db, number, additions)
            tables.grow(db, packed_buckets.growth(new))
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

    async def build(self, pages: "AsyncIterator[FingerprintArrays]", scratch: Path) -> AsyncGenerator[int, None]:
        """Fill the empty index in one transaction per column, its rows in ascending order."""
        bits, spool = await self._do(self._bits), Spool(scratch)
        async for page in pages:
            await asyncio.to_thread(spool_page, spool, page, self._bandings, bits)
        for column in spooled_columns(spool, self._bandings):
            await self._connection.do(partial(tables.fill, spool=spool, column=column))
            yield column.stories

    async def story_counts(self) -> dict[Language, int]:
        query = "SELECT language, stories FROM index_languages"
        rows = await self._connection.do(lambda db: db.execute(query).fetchall())
        return {Language(language): n for language, n in rows if n}

    async def bucket_sizes(self, sample: Sequence[BandedFingerprint]) -> dict[Bucket, int]:
        def read(db: sqlite3.Connection) -> dict[Bucket, int]:
            bits, language_numbers, sizes = self._bits(db), tables.language_numbers(db), {}
            for language, positions in packed_buckets.positions_by_language(sample).items():
                stories = [sample[position] for position in positions]
                request = packed_buckets.lookup_request(language, stories, self._bandings[language], bits[language])
                lengths = tables.lengths(db, tables.rows(language_numbers, request))
                for bucket, length in zip(request.buckets.tolist(), lengths, strict=True):
                    if length:
                        record = packed_buckets.bucket_record(language, bucket)
                        sizes[record] = length // packed_buckets.NUMBER_BYTES
            return sizes

        return await self._do(read)

    async def missing(self, stories: Sequence[Change]) -> list[int]:
        counts = [0] * len(stories)
        for _, entries in await self._do(self._lacking, stories):
            for story, _ in entries:
                counts[story] += 1
        return counts

    async def restore(self, stories: Sequence[Change]) -> None:
        numbers = [story.number for story in stories]

        def write(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            language_numbers = tables.language_numbers(db)
            for language, entries in self._lacking(db, stories):
                tables.append(db, language_numbers[language], additions_of(entries, numbers))
            db.execute("COMMIT")

        await self._do(write)

    def _lacking(self, db: sqlite3.Connection, stories: Sequence[Change]) -> list[tuple[Language, list[Entry]]]:
        """For each language, the entries that buckets lack of its stories."""
        bits, language_numbers = self._bits(db), tables.language_numbers(db)
        lacks = []
        for language, found in by_language(stories).items():
            entries: list[Entry] = []
            for start in range(0, len(found), STORIES_PER_READ):
                chunk, banding = found[start : start + STORIES_PER_READ], self._bandings[language]
                request = packed_buckets.lookup_request(language, [new for _, new in chunk], banding, bits[language])
                numbers = [stories[position].number for position, _ in chunk]
                missing = lacking(request, numbers, tables.whole(db, tables.rows(language_numbers, request)))
                entries += [(chunk[nth][0], bucket) for nth, bucket in missing]
            lacks.append((language, entries))
        return lacks

    async def problem(self) -> str | None:
        checked = await self._connection.do(lambda db: db.execute("PRAGMA quick_check(1)").fetchone()[0])
        if checked != "ok":
            return str(checked)
        return packed_buckets.overfull(await self.story_counts(), await self._do(self._bits))

    async def check_writable(self) -> None:
        await self._connection.do(lambda db: db.execute("INSERT OR REPLACE INTO index_marks VALUES ('touched', 1)"))

    async def close(self) -> None:
        self._connection.close()

    def _bits(self, db: sqlite3.Connection) -> packed_buckets.Bits:
        row = db.execute("SELECT value FROM index_marks WHERE key = 'bits'").fetchone()
        return packed_buckets.recorded_bits(row and tables.text(row[0]), self._bandings)

    async def _do(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As the connection's `do`; if the index is damaged, it then has no position, so that it is rebuilt."""
        try:
            return await self._connection.do(work, *args, **kwargs)
        except IndexDamaged:
            await self._connection.do(lambda db: db.execute("DELETE FROM index_marks WHERE key = 'applied'"))
            raise
