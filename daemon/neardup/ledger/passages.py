"""Passage hashes: their outbox, the stories that lack them, and the hashes that are common.

The segments of the passage index are files beside the ledger, each of a range of story numbers.  `stories.commit`
writes the hashes of stories in the transaction of the stories, under their numbers; they are removed once a segment
that holds these numbers is durable.  So a story whose hashes stand in neither place lost them with a segment: only the
gaps between the ranges of the segments, and what follows the last, can hold such stories, whose pages are read again.

A passage that many stories hold, such as a prayer or a disclaimer, is common: its hash nominates none of them, see
neardup.nomination.passages.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.ledger import AMONG, Row, dump_list, languages, now_ms, select_named_rows, transaction
from neardup.ledger.outbox import read_last_seq
from neardup.ledger.runs import get, put
from neardup.records import Language, Story

MOST_COUNTED = 1_000_000  # in about a tenth of a second
MISSING = (
    "FROM stories s WHERE s.number BETWEEN ? AND ?"
    " AND NOT EXISTS (SELECT 1 FROM passage_hashes p WHERE p.number = s.number)"
)
GROWTH = 1.1  # a count is written again once it has grown by a tenth: each new copy of a prayer would cost a write
REVISION = "common_passages_revision"
GONE = "versions_left"
OF_LANGUAGE = "SELECT hash FROM common_passages WHERE language = (SELECT number FROM languages WHERE name = ?)"
Range = tuple[int, int]  # of story numbers, inclusive
Hashes = npt.NDArray[np.uint32]


# The outbox.


def put_hashes(db: sqlite3.Connection, rows: Iterable[tuple[int, bytes]]) -> None:
    """Record the passage hashes of stories by their numbers, within the caller's transaction."""
    db.executemany("INSERT INTO passage_hashes VALUES (?, ?)", rows)


def remove_hashes(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove the rows of versions that are replaced or removed, within the caller's transaction."""
    db.executemany("DELETE FROM passage_hashes WHERE number = ?", ((number,) for number in numbers))


def list_hashes(db: sqlite3.Connection, number: int, limit: int) -> list[tuple[int, bytes]]:
    """The next rows after a number, in order: number, hashes of 4 bytes each, ascending as little-endian numbers."""
    return db.execute(
        "SELECT number, hashes FROM passage_hashes WHERE number > ? ORDER BY number LIMIT ?", (number, limit)
    ).fetchall()


def prune_hashes(db: sqlite3.Connection, last: int) -> None:
    """Remove the rows up to a number, which a durable segment holds, and record that number."""
    with transaction(db):
        db.execute("DELETE FROM passage_hashes WHERE number <= ?", (last,))
        put(db, "passages_flushed", str(max(last, read_flushed_number(db))))


def read_flushed_number(db: sqlite3.Connection) -> int:
    """The number up to which passage hashes were handed over to segments; 0 before the first."""
    return int(get(db, "passages_flushed") or 0)


def count_unflushed(db: sqlite3.Connection) -> int:
    """The number of stories whose passage hashes no durable segment holds yet."""
    return int(db.execute("SELECT count(*) FROM passage_hashes").fetchone()[0])


# Missing hashes.


class MissingStory(NamedTuple):
    """A story whose page is to be read again, under its number; `text_hash` is that of the text on record."""

    number: int
    story: Story
    text_hash: bytes


def find_gaps(db: sqlite3.Connection, held: Sequence[Range]) -> list[Range]:
    """The ranges of numbers up to the ledger's last that no range of `held`, ascending and disjoint, contains."""
    found, first = [], 1
    for start, stop in (*held, (read_last_seq(db) + 1, 0)):
        if first < start:
            found.append((first, start - 1))
        first = max(first, stop + 1)
    return found


def count_missing(db: sqlite3.Connection, held: Sequence[Range]) -> int:
    """The number of missing stories where the segments hold these ranges; counted to MOST_COUNTED."""
    found = 0
    for gap in find_gaps(db, held):
        query = f"SELECT count(*) FROM (SELECT 1 {MISSING} LIMIT ?)"
        found += db.execute(query, (*gap, MOST_COUNTED - found)).fetchone()[0]
    return found


def list_next_missing(db: sqlite3.Connection, first: int, last: int, limit: int) -> list[MissingStory]:
    """The first `limit` missing stories with the numbers [first, last], in order of their numbers."""
    name_of = languages.map_names(db)
    rows = db.execute(
        f"SELECT number, id, language, path, text_hash {MISSING} ORDER BY number LIMIT ?", (first, last, limit)
    )
    return [
        MissingStory(number, Story(story_id, name_of[language], path), text_hash)
        for number, story_id, language, path, text_hash in rows
    ]


# Common passages.


class CommonPassage(NamedTuple):
    """A passage hash that `holders` stories hold, of which `example` is one of this language.

    It is certainly common while fewer than `due_at` versions are gone from the ledger, see `note_gone`.
    """

    language: Language
    hash: int
    holders: int
    example: int | None
    due_at: int


class FoundCommon(NamedTuple):
    """Common passages to record, and the ids of the stories that hold those which no language has on record."""

    passages: Sequence[CommonPassage] = ()
    holders: Collection[int] = ()


NONE_FOUND = FoundCommon()


def record_common(db: sqlite3.Connection, rows: Sequence[CommonPassage]) -> None:
    """Record common passages; a count on record is not lowered."""
    if not rows:
        return
    number_of, now = languages.map_numbers(db), now_ms()
    with transaction(db):
        db.executemany(
            "INSERT INTO common_passages (language, hash, holders, example, first_at, due_at)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET holders = max(holders, excluded.holders),"
            " example = coalesce(example, excluded.example), due_at = max(due_at, excluded.due_at)"
            f" WHERE excluded.holders > {GROWTH} * holders OR (example IS NULL AND excluded.example IS NOT NULL)",
            ((number_of[row.language], int(row.hash), int(row.holders), row.example, now, row.due_at) for row in rows),
        )
        note_common_change(db)


def read_all_common(db: sqlite3.Connection) -> Hashes:
    """The common passages of all languages, ascending."""
    return _select_hashes(db, "SELECT DISTINCT hash FROM common_passages ORDER BY hash")


def map_common_languages(db: sqlite3.Connection, hashes: Hashes) -> dict[int, set[Language]]:
    """Which of these hashes are common passages -> the languages in which they are on record."""
    found = defaultdict[int, set[Language]](set)
    for hash_, name in db.execute(
        f"SELECT hash, name FROM languages l CROSS JOIN common_passages c ON c.language = l.number WHERE hash {AMONG}",
        (json.dumps(hashes.tolist()),),
    ):
        found[hash_].add(Language(name))
    return dict(found)


def note_gone(db: sqlite3.Connection, versions: int) -> None:
    """Count versions that were replaced or removed, within the caller's transaction."""
    if versions:
        put(db, GONE, str(count_gone(db) + versions))


def count_gone(db: sqlite3.Connection) -> int:
    """The number of versions that were replaced or removed."""
    return int(get(db, GONE) or 0)


def list_due_for_counting(db: sqlite3.Connection, gone: int, limit: int) -> Hashes:
    """The first of the common passages, ascending, that may not be common once so many versions are gone."""
    due = "SELECT DISTINCT hash FROM common_passages WHERE due_at <= ? ORDER BY hash LIMIT ?"
    return _select_hashes(db, due, gone, limit)


def put_due(db: sqlite3.Connection, due_at: Mapping[int, int]) -> None:
    """Record until when hashes are certainly common, within the caller's transaction."""
    db.executemany(
        "UPDATE common_passages SET due_at = ?1 WHERE language IN (SELECT number FROM languages) AND hash = ?2",
        ((due, hash_) for hash_, due in due_at.items()),
    )


def remove_common(db: sqlite3.Connection, hashes: Iterable[int]) -> None:
    """Record that passages are not common, within the caller's transaction."""
    removed = db.execute(
        f"DELETE FROM common_passages WHERE language IN (SELECT number FROM languages) AND hash {AMONG}",
        (dump_list(hashes),),
    )
    if removed.rowcount:
        note_common_change(db)


def forget_examples(db: sqlite3.Connection, story_ids: Sequence[int]) -> None:
    """Drop these stories, whose texts change or go, as examples, within the caller's transaction."""
    db.execute(f"UPDATE common_passages SET example = NULL WHERE example {AMONG}", (dump_list(story_ids),))


def read_common_revision(db: sqlite3.Connection) -> int:
    """A number that grows with each change of the common passages."""
    return int(get(db, REVISION) or 0)


def note_common_change(db: sqlite3.Connection) -> None:
    """Let the revision of `read_common_revision` grow, within the caller's transaction."""
    put(db, REVISION, str(read_common_revision(db) + 1))


def read_common(db: sqlite3.Connection, language: Language) -> Hashes:
    """The common passages of a language, ascending."""
    return _select_hashes(db, f"{OF_LANGUAGE} ORDER BY hash", language)


def find_common_among(db: sqlite3.Connection, language: Language, hashes: Hashes) -> Hashes:
    """Which of these passage hashes are common passages of a language, ascending."""
    return _select_hashes(db, f"{OF_LANGUAGE} AND hash {AMONG} ORDER BY hash", language, json.dumps(hashes.tolist()))


def _select_hashes(db: sqlite3.Connection, query: str, *values: object) -> Hashes:
    return np.fromiter((row[0] for row in db.execute(query, values)), np.uint32)


def list_common(db: sqlite3.Connection, limit: int) -> list[Row]:
    """The common passages that the most stories hold.

    Columns: language, hash, holders, example (a story's id, or None), example_title, first_at (milliseconds).
    """
    return select_named_rows(
        db,
        "SELECT l.name AS language, hash, holders, example, coalesce(title, page_title, path) AS example_title,"
        " first_at FROM common_passages c JOIN languages l ON l.number = c.language"
        " LEFT JOIN stories s ON s.id = c.example ORDER BY holders DESC, l.name, hash LIMIT ?",
        (limit,),
    ).fetchall()


def count_common(db: sqlite3.Connection) -> dict[str, int]:
    """The number of common passages, by language."""
    return dict(
        db.execute(
            "SELECT name, count(*) FROM common_passages c JOIN languages l ON l.number = c.language"
            " GROUP BY name ORDER BY name"
        )
    )
