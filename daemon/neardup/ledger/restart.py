"""The removal of all fingerprints, before a backfill makes them again."""

import sqlite3

from neardup.ledger import changes, common_passages, known_since, transaction
from neardup.ledger.runs import put

# The tables that `restart` empties: everything that follows from fingerprints but flags and verdicts.
OF_FINGERPRINTS = (
    "stories",
    "changes",
    "candidates",
    "suppressed_pairs",
    "passage_hashes",
    "common_passages",
    "similarities",
    "due_similarities",
    "unsettled",
    "marks",
)


def restart(db: sqlite3.Connection, version: str, extraction: str) -> None:
    """Remove all fingerprints, so that a backfill computes them again, as `version`, by `extraction`.

    Flags stay on record, withdrawn until their pairs are verified again; verdicts stay as they are.
    """
    with transaction(db):
        db.execute("UPDATE flags SET status = 'withdrawn', language = NULL")
        known_since.keep_all(db)
        for table in OF_FINGERPRINTS:
            db.execute(f"DELETE FROM {table}")
        common_passages.note_change(db)
        db.execute("UPDATE languages SET stories = 0")
        db.execute("DELETE FROM meta WHERE key IN ('checkpoint', 'watermark')")
        put(db, "fingerprint_version", version)
        put(db, "refingerprinting", f"{version} {extraction}")
        changes.take(db, 1)  # a number without a change: an index that was not cleared is recognised as behind
        changes.drop(db, 0)
