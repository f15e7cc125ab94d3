"""The tables of the embedded index in the ledger's file (see neardup.index.sqlite), and what is read and written there.

The functions raise IndexDamaged for a row that holds what neardup did not write there.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from neardup.core.candidates.banding import BAND_BITS
from neardup.errors import IndexDamaged
from neardup.index import packed_buckets
from neardup.index.bulk import Spool, SpooledColumn
from neardup.index.positions import number_of
from neardup.records import Language

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


def applied(db: sqlite3.Connection) -> int | None:
    row = db.execute("SELECT value FROM index_marks WHERE key = 'applied'").fetchone()
    return number_of(row[0]) if row else None


def text(value: object) -> str:
    """A record; raises IndexDamaged if it is no text."""
    if not isinstance(value, str):
        raise IndexDamaged("the index is damaged: a record of a setting is no text")
    return value


def register(db: sqlite3.Connection, languages: Iterable[Language]) -> None:
    """Give each new language the next number; numbers never change."""
    known = language_numbers(db)
    if new := [language for language in languages if language not in known]:
        numbered = enumerate(new, max(known.values(), default=-1) + 1)
        db.executemany("INSERT OR IGNORE INTO index_languages (number, language) VALUES (?, ?)", numbered)


def language_numbers(db: sqlite3.Connection) -> dict[Language, int]:
    return dict(db.execute("SELECT language, number FROM index_languages"))


def fill(db: sqlite3.Connection, spool: Spool, column: SpooledColumn) -> None:
    db.execute("BEGIN IMMEDIATE")
    number = language_numbers(db)[column.language]
    written = ((row(number, bucket), added) for bucket, added in column.buckets(spool))
    db.executemany(APPEND, written)  # appended, since the buckets may hold a probe of `neardup doctor`
    grow(db, {column.language: column.stories})
    db.execute("COMMIT")


def append(db: sqlite3.Connection, language_number: int, additions: packed_buckets.Additions) -> None:
    """Add numbers to the buckets of a language, within the caller's transaction."""
    added = ((row(language_number, bucket), numbers) for bucket, numbers in additions.by_bucket())
    db.executemany(APPEND, added)


def grow(db: sqlite3.Connection, growth: Mapping[Language, int]) -> None:
    db.executemany("UPDATE index_languages SET stories = stories + ?2 WHERE language = ?1", growth.items())


def row(language_number: int, bucket: int) -> int:
    return language_number << COLUMN_BITS + BAND_BITS | bucket


def rows(number_of_language: Mapping[Language, int], request: packed_buckets.LookupRequest) -> list[int]:
    number = number_of_language[request.language]
    return [row(number, bucket) for bucket in request.buckets.tolist()]


def lengths(db: sqlite3.Connection, rows: Sequence[int]) -> list[int]:
    lengths = db.execute(
        "SELECT coalesce(length(numbers), 0) FROM json_each(?) LEFT JOIN index_buckets ON bucket = value",
        (json.dumps(rows),),
    )
    return [length for (length,) in lengths]


def whole(db: sqlite3.Connection, rows: Sequence[int]) -> list[bytes | None]:
    """The contents of each bucket; None for an empty one."""
    query = "SELECT numbers FROM json_each(?) LEFT JOIN index_buckets ON bucket = value"
    found = db.execute(query, (json.dumps(rows),)).fetchall()
    return [None if numbers is None else _blob(numbers) for (numbers,) in found]


def read(db: sqlite3.Connection, rows: Sequence[int], most: int) -> tuple[list[bytes], list[int]]:
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
            values.append(_blob(numbers))
    return values, lengths


def _blob(numbers: object) -> bytes:
    if not isinstance(numbers, bytes):
        raise IndexDamaged("the index is damaged: a bucket is no blob")
    return numbers
