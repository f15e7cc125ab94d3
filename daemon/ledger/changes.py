"""The outbox: what the index has to be told, numbered in order."""

import sqlite3

from daemon.records import Banded, Change, Language


def log(db: sqlite3.Connection, story_id: int, old: Banded | None, new: Banded | None, number: int | None) -> None:
    """Put a change on record, within the caller's transaction."""
    db.execute(
        "INSERT INTO changes (story_id, old_language, old_simhash, new_language, new_simhash, number)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (story_id, old and old.language, old and old.simhash, new and new.language, new and new.simhash, number),
    )


def last_seq(db: sqlite3.Connection) -> int:
    """The number of the last change ever written; 0 before the first."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    return row[0] if row else 0


def after(db: sqlite3.Connection, seq: int, limit: int) -> list[Change]:
    """The next changes after `seq`, in order.

    A version of a story that was replaced since has no signature here: the change that replaced it follows.
    """
    rows = db.execute(
        "SELECT c.seq, c.story_id, c.old_language, c.old_simhash, c.new_language, c.new_simhash, s.signature, c.number"
        " FROM changes c LEFT JOIN stories s ON s.number = c.number WHERE c.seq > ? ORDER BY c.seq LIMIT ?",
        (seq, limit),
    )
    return [Change(n, story_id, _banded(*row[:2]), _banded(*row[2:5]), row[5] or 0) for n, story_id, *row in rows]


def _banded(language: str | None, simhash: bytes | None, signature: bytes | None = None) -> Banded | None:
    return Banded(Language(language), simhash, signature) if language and simhash else None


def prune(db: sqlite3.Connection, keep: int) -> None:
    """Drop all but the last `keep` changes."""
    db.execute("DELETE FROM changes WHERE seq <= ?", (last_seq(db) - keep,))


def oldest(db: sqlite3.Connection) -> int:
    """The number of the oldest change still held; one past the last where none is."""
    return int(db.execute("SELECT min(seq) FROM changes").fetchone()[0] or last_seq(db) + 1)


def recent(db: sqlite3.Connection, limit: int) -> list[Banded]:
    """A sample of stories: those whose fingerprints changed last."""
    rows = db.execute(
        "SELECT s.language, s.simhash, s.signature FROM changes c JOIN stories s ON s.number = c.number"
        " ORDER BY c.seq DESC LIMIT ?",
        (limit,),
    )
    return [Banded(Language(language), *hashes) for language, *hashes in rows]
