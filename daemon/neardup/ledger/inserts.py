"""Stories as the changes that insert them into an index, numbered 0 because they are not the outbox's."""

import json
import random
import sqlite3
from collections.abc import Iterable

from neardup.ledger import languages
from neardup.ledger.changes import last_seq
from neardup.records import BandedFingerprint, Change

SELECT = "SELECT number, id, language, simhash, signature FROM stories"


def sample(db: sqlite3.Connection, most: int) -> list[Change]:
    """All stories if there are at most `most`, else nearly so many that are drawn at random."""
    (count,) = db.execute("SELECT coalesce(sum(stories), 0) FROM languages").fetchone()
    if count <= most:
        return _changes(db, db.execute(f"{SELECT} ORDER BY number"))
    drawn = sorted(random.SystemRandom().choices(range(1, last_seq(db) + 1), k=most))
    nearest = "SELECT (SELECT min(number) FROM stories WHERE number >= value) FROM json_each(?)"
    return _changes(db, db.execute(f"{SELECT} WHERE number IN ({nearest})", (json.dumps(drawn),)))


def after(db: sqlite3.Connection, number: int, limit: int) -> list[Change]:
    """The first `limit` stories whose numbers are above `number`, in order of their numbers."""
    return _changes(db, db.execute(f"{SELECT} WHERE number > ? ORDER BY number LIMIT ?", (number, limit)))


def existing(db: sqlite3.Connection, numbers: Iterable[int]) -> set[int]:
    """The numbers that still are those of stories: an edit gives a story another number."""
    wanted = json.dumps(list(numbers))
    rows = db.execute("SELECT number FROM stories WHERE number IN (SELECT value FROM json_each(?))", (wanted,))
    return {number for (number,) in rows}


def _changes(db: sqlite3.Connection, rows: sqlite3.Cursor) -> list[Change]:
    name_of = languages.names(db)
    return [
        Change(0, story_id, None, BandedFingerprint(name_of[language], *hashes), number)
        for number, story_id, language, *hashes in rows
    ]


def of_stories(db: sqlite3.Connection, ids: Iterable[int]) -> list[Change]:
    """The stories with these ids, in order of their numbers."""
    wanted = json.dumps(list(ids))
    rows = db.execute(f"{SELECT} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY number", (wanted,))
    return _changes(db, rows)
