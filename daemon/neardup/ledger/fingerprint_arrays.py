"""Reads the fingerprints of many stories as arrays, for nomination and to build an index."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.candidates.select import MAX_UNINDEXED, Found, merge_found
from neardup.ledger import languages
from neardup.ledger.changes import last_seq

SELECT = "SELECT number, id, language, simhash, signature FROM stories"


def after(db: sqlite3.Connection, number: int, limit: int) -> FingerprintArrays:
    """The first `limit` stories whose numbers are above `number`, in order of their numbers."""
    rows = db.execute(f"{SELECT} WHERE number > ? ORDER BY number LIMIT ?", (number, limit))
    return FingerprintArrays.of(rows, languages.names(db))


def existing(db: sqlite3.Connection, ids: Iterable[int], numbers: Iterable[int]) -> FingerprintArrays:
    """The stories with these ids or numbers, in order of their numbers; those not in the ledger are left out."""
    rows = {
        row[0]: row
        for column, wanted in (("id", ids), ("number", numbers))
        for row in db.execute(
            f"{SELECT} WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(list(wanted)),)
        )
    }
    return FingerprintArrays.of((rows[number] for number in sorted(rows)), languages.names(db))


def for_nomination(
    db: sqlite3.Connection, found: Sequence[Found], applied: int
) -> tuple[FingerprintArrays, FingerprintArrays] | None:
    """The stories that lookups found, and the stories that the index lacks because it has changes up to `applied` only.

    None if the index is more than MAX_UNINDEXED changes behind the ledger, or ahead of it.
    """
    if not 0 <= last_seq(db) - applied <= MAX_UNINDEXED:
        return None
    return existing(db, *merge_found(found)), after(db, applied, MAX_UNINDEXED)


def for_one_text(
    db: sqlite3.Connection, found: Found, applied: int | None
) -> tuple[FingerprintArrays, FingerprintArrays, int]:
    """The stories that a lookup found, and the latest stories, up to MAX_UNINDEXED, that the index lacks.

    `applied` is the last change that the index has; None if nothing was looked up.  Returns as well how many changes
    neither of the two covers.
    """
    last = last_seq(db)
    first = 0 if applied is None or applied > last else applied
    latest = max(first, last - MAX_UNINDEXED)
    return existing(db, *merge_found([found])), after(db, latest, MAX_UNINDEXED), latest - first
