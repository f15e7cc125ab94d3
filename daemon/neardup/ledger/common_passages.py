"""Common passages: the passage hashes that so many stories hold that they nominate none of them."""

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.ledger import languages, now_ms, transaction
from neardup.ledger.runs import get as get_meta
from neardup.ledger.runs import put as put_meta
from neardup.records import Language

Hashes = npt.NDArray[np.uint32]
GROWTH = 1.1  # a count is written again once it has grown by a tenth: each new copy of a prayer would cost a write
REVISION = "common_passages_revision"


class CommonPassage(NamedTuple):
    """A passage hash that `holders` stories of a language hold, of which `example` is one."""

    language: Language
    hash: int
    holders: int
    example: int | None


def record(db: sqlite3.Connection, rows: Sequence[CommonPassage]) -> None:
    """Record common passages in a transaction; a count on record only grows, and an example on record stays."""
    with transaction(db):
        put_common(db, rows)


def record_new(db: sqlite3.Connection, rows: Sequence[CommonPassage]) -> set[int]:
    """Record common passages as `record` does; returns the hashes that were not on record in their language."""
    number_of = languages.numbers(db)
    with transaction(db):
        new = {
            row.hash
            for row in rows
            if db.execute(
                "SELECT NOT EXISTS (SELECT 1 FROM common_passages WHERE language = ? AND hash = ?)",
                (number_of[row.language], row.hash),
            ).fetchone()[0]
        }
        put_common(db, rows)
    return new


def put_common(db: sqlite3.Connection, rows: Sequence[CommonPassage]) -> None:
    """Record common passages, within the caller's transaction."""
    number_of, now, before = languages.numbers(db), now_ms(), db.total_changes
    db.executemany(
        "INSERT INTO common_passages VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE"
        " SET holders = max(holders, excluded.holders), example = coalesce(example, excluded.example)"
        f" WHERE excluded.holders > {GROWTH} * holders OR (example IS NULL AND excluded.example IS NOT NULL)",
        ((number_of[row.language], int(row.hash), int(row.holders), row.example, now) for row in rows),
    )
    if db.total_changes > before:
        note_change(db)


def of_language(db: sqlite3.Connection, language: Language) -> Hashes:
    """The common passages of a language, ascending."""
    rows = db.execute(
        "SELECT hash FROM common_passages WHERE language = (SELECT number FROM languages WHERE name = ?) ORDER BY hash",
        (language,),
    )
    return np.fromiter((row[0] for row in rows), np.uint32)


def revision(db: sqlite3.Connection) -> int:
    """A number that grows with each change of the common passages."""
    return int(get_meta(db, REVISION) or 0)


def note_change(db: sqlite3.Connection) -> None:
    """Let `revision` grow, within the caller's transaction."""
    put_meta(db, REVISION, str(revision(db) + 1))


def common_holders(db: sqlite3.Connection, language: Language) -> dict[int, int]:
    """The common passages of a language: hash -> how many stories hold it."""
    rows = db.execute(
        "SELECT hash, holders FROM common_passages WHERE language = (SELECT number FROM languages WHERE name = ?)",
        (language,),
    )
    return dict(rows.fetchall())


def among(db: sqlite3.Connection, language: Language, hashes: Hashes) -> Hashes:
    """Which of these passage hashes are common passages of a language, ascending."""
    rows = db.execute(
        "SELECT hash FROM common_passages WHERE language = (SELECT number FROM languages WHERE name = ?)"
        " AND hash IN (SELECT value FROM json_each(?)) ORDER BY hash",
        (language, json.dumps(hashes.tolist())),
    )
    return np.fromiter((row[0] for row in rows), np.uint32)


def listed(db: sqlite3.Connection, limit: int) -> list[sqlite3.Row]:
    """The common passages that the most stories hold.

    Columns: language, hash, holders, example (a story's id, or None), example_title, first_at (milliseconds).
    """
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        "SELECT l.name AS language, hash, holders, example, coalesce(title, page_title, path) AS example_title,"
        " first_at FROM common_passages c JOIN languages l ON l.number = c.language"
        " LEFT JOIN stories s ON s.id = c.example ORDER BY holders DESC, l.name, hash LIMIT ?",
        (limit,),
    ).fetchall()


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """The number of common passages, by language."""
    return dict(
        db.execute(
            "SELECT name, count(*) FROM common_passages c JOIN languages l ON l.number = c.language"
            " GROUP BY name ORDER BY name"
        )
    )


def forget_examples(db: sqlite3.Connection, story_ids: Sequence[int]) -> None:
    """Drop these stories, whose texts change or go, as examples, within the caller's transaction."""
    db.execute(
        "UPDATE common_passages SET example = NULL WHERE example IN (SELECT value FROM json_each(?))",
        (json.dumps(list(story_ids)),),
    )
