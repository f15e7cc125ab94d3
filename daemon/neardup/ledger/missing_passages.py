"""The stories whose passage hashes are missing: neither a segment of the passage index nor the outbox has them.

The segments hold ranges of story numbers.  The gaps between these ranges, and what follows the last, are where stories
may be missing.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from neardup.ledger import languages
from neardup.ledger.changes import last_seq
from neardup.records import Story

MOST_COUNTED = 1_000_000  # in about a tenth of a second
Range = tuple[int, int]  # of story numbers, inclusive

MISSING = (
    "FROM stories s WHERE s.number BETWEEN ? AND ?"
    " AND NOT EXISTS (SELECT 1 FROM passage_hashes p WHERE p.number = s.number)"
)


class MissingStory(NamedTuple):
    """A story whose page is to be read again, under its number; `text_hash` is that of the text on record."""

    number: int
    story: Story
    text_hash: bytes


def gaps(db: sqlite3.Connection, held: Sequence[Range]) -> list[Range]:
    """The ranges of numbers up to the ledger's last that no range of `held`, ascending and disjoint, contains."""
    found, first = [], 1
    for start, stop in (*held, (last_seq(db) + 1, 0)):
        if first < start:
            found.append((first, start - 1))
        first = max(first, stop + 1)
    return found


def count(db: sqlite3.Connection, held: Sequence[Range], most: int = MOST_COUNTED) -> int:
    """The number of missing stories where the segments hold these ranges; counted to `most`."""
    found = 0
    for gap in gaps(db, held):
        [rows] = db.execute(f"SELECT count(*) FROM (SELECT 1 {MISSING} LIMIT ?)", (*gap, most - found)).fetchone()
        found += rows
    return found


def next_stories(db: sqlite3.Connection, first: int, last: int, limit: int) -> list[MissingStory]:
    """The first `limit` missing stories with the numbers [first, last], in order of their numbers."""
    name_of = languages.names(db)
    rows = db.execute(
        f"SELECT number, id, language, path, text_hash {MISSING} ORDER BY number LIMIT ?", (first, last, limit)
    )
    return [
        MissingStory(number, Story(story_id, name_of[language], path), text_hash)
        for number, story_id, language, path, text_hash in rows
    ]
