"""The submitted stories that are to be looked up once more.

While one process looks a story up and writes it, another may write one that is like it.  So the process that holds the
lock, whose indexes are in step with the ledger, looks up every submitted story once more.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from neardup.ledger import candidates, languages, transaction
from neardup.ledger.candidates import Matches
from neardup.records import BandedFingerprint


class Unsettled(NamedTuple):
    """A version of a submitted story: its number, its id, its fingerprint, and its passage hashes of 4 bytes each."""

    number: int
    story_id: int
    banded: BandedFingerprint
    passages: bytes


def put(db: sqlite3.Connection, story_id: int, passages: bytes) -> None:
    """Record that the present version of a story is to be looked up once more, within the caller's transaction."""
    db.execute(
        "INSERT OR REPLACE INTO unsettled SELECT number, ? FROM stories WHERE id = ?",
        (passages, story_id),
    )


def listed(db: sqlite3.Connection, limit: int) -> list[Unsettled]:
    """The first of them, by number; versions that were replaced or removed since are left out."""
    rows = db.execute(
        "SELECT number, id, language, simhash, signature, hashes FROM unsettled JOIN stories USING (number)"
        " ORDER BY number LIMIT ?",
        (limit,),
    )
    name_of = languages.names(db)
    return [
        Unsettled(number, story_id, BandedFingerprint(name_of[language], simhash, signature), hashes)
        for number, story_id, language, simhash, signature, hashes in rows
    ]


def settle(db: sqlite3.Connection, some: Sequence[Unsettled], matches: Sequence[Matches]) -> None:
    """Record what the lookups of these versions found, in one transaction."""
    numbers = json.dumps([one.number for one in some])
    with transaction(db):
        for one in matches:
            candidates.nominate(db, one)
        db.execute(
            "DELETE FROM unsettled WHERE number IN (SELECT value FROM json_each(?))"
            " OR NOT EXISTS (SELECT 1 FROM stories s WHERE s.number = unsettled.number)",
            (numbers,),
        )


def count_unsettled(db: sqlite3.Connection) -> int:
    """The number of submitted stories that are still to be looked up once more."""
    # CROSS JOIN, because SQLite would search all stories where it knows nothing of the sizes
    return int(db.execute("SELECT count(*) FROM unsettled CROSS JOIN stories USING (number)").fetchone()[0])
