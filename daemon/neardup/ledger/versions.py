"""The versions of stories by number: a new story and a changed one have a number that was never used before."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.ledger import languages
from neardup.ledger.changes import last_seq
from neardup.records import BandedFingerprint, Language, Story

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


def live_numbers(db: sqlite3.Connection) -> npt.NDArray[np.bool_]:
    """(last number + 1,) whether each number is that of a story; the numbers of former versions are not."""
    live = np.zeros(last_seq(db) + 1, bool)
    rows = db.execute("SELECT number FROM stories")  # SQLite reads them from the small index of ids
    while some := rows.fetchmany(ROWS_AT_A_TIME):
        live[np.array(some, np.int64).ravel()] = True
    return live


def ids_of(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, int]:
    """The ids of the stories with these numbers; the numbers of former versions are left out."""
    return {number: story_id for number, (story_id, _) in stories_of(db, numbers).items()}


def stories_of(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, tuple[int, Language]]:
    """The id and the language of the stories with these numbers; the numbers of former versions are left out."""
    rows = db.execute(
        "SELECT number, id, language FROM stories WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )
    name_of = languages.names(db)
    return {number: (story_id, name_of[language]) for number, story_id, language in rows}


ROWS_AT_A_TIME = 100_000


def recent_fingerprints(db: sqlite3.Connection, limit: int) -> list[BandedFingerprint]:
    """A sample of stories: those that were fingerprinted last."""
    rows = db.execute("SELECT language, simhash, signature FROM stories ORDER BY number DESC LIMIT ?", (limit,))
    name_of = languages.names(db)
    return [BandedFingerprint(name_of[language], *hashes) for language, *hashes in rows]
