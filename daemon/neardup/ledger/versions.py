"""The versions of stories by number: a new story and a changed one have a number that was never used before."""

import json
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from neardup.ledger import languages
from neardup.records import Language, Story

ROWS_AT_ONCE = 10_000


class Numbered(NamedTuple):
    """A story, and the number of its version."""

    story_id: int
    number: int


class TextVersion(NamedTuple):
    """A story, and the hash of its text."""

    story: Story
    text_hash: bytes


def after(db: sqlite3.Connection, number: int) -> list[Numbered]:
    """The next versions after a number, up to ROWS_AT_ONCE of them, in order."""
    rows = db.execute("SELECT id, number FROM stories WHERE number > ? ORDER BY number LIMIT ?", (number, ROWS_AT_ONCE))
    return [Numbered(*row) for row in rows]


def known_since(db: sqlite3.Connection, time: int) -> list[Numbered]:
    """The stories that are known since a time in milliseconds, or a later one.  It reads every row."""
    return [Numbered(*row) for row in db.execute("SELECT id, number FROM stories WHERE known_since >= ?", (time,))]


def works(db: sqlite3.Connection) -> list[Numbered]:
    """The works of the reference that have a fingerprint."""
    return [Numbered(*row) for row in db.execute("SELECT id, number FROM stories WHERE id < 0")]


def present(db: sqlite3.Connection, ids: Collection[int]) -> set[int]:
    """Which of these stories are known."""
    found = db.execute("SELECT id FROM stories WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
    return {story_id for (story_id,) in found}


def texts(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, TextVersion]:
    """The known stories among these ids, as their pages are read."""
    name_of: dict[int, Language] = languages.names(db)
    rows = db.execute(
        "SELECT id, language, path, text_hash FROM stories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {
        story_id: TextVersion(Story(story_id, name_of[language], path), text_hash)
        for story_id, language, path, text_hash in rows
    }
