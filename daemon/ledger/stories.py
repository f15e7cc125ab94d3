"""Stories, their changes and their candidates: what one batch writes, and what a run asks."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from daemon.ledger import candidates, changes, now_ms, transaction
from daemon.ledger.runs import put, put_checkpoint
from daemon.records import (
    Banded,
    Change,
    Checkpoint,
    DeadLettered,
    Fingerprinted,
    Known,
    Language,
    Outcome,
    Skip,
    Skipped,
    Story,
)

# The page as it now is has no story on it, so the fingerprint of the one it had is withdrawn.  A
# missing or oversized object says nothing of the text.
TEXT_IS_GONE = {Skip.EMPTY, Skip.NOT_TEXT, Skip.NO_BODY, Skip.TOO_SHORT}


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction writes: outcomes of distinct stories, their matches, the run's standing."""

    outcomes: Sequence[Outcome]
    matches: Sequence[candidates.Matches]
    run_id: int
    counts: dict[str, object]
    checkpoint: Checkpoint | None


def known(db: sqlite3.Connection, story_id: int) -> Known | None:
    """What the ledger knows of a story, or None."""
    row = db.execute("SELECT language, text_hash, etag, updated_at FROM stories WHERE id = ?", (story_id,)).fetchone()
    return Known(Language(row[0]), *row[1:]) if row else None


def held(db: sqlite3.Connection, ids: Iterable[int], numbers: Iterable[int]) -> dict[int, tuple[int, Banded]]:
    """Stories by id or number -> number -> id and fingerprints, of those that the ledger holds."""
    rows = db.execute(
        "SELECT number, id, language, simhash, signature FROM stories WHERE id IN (SELECT value FROM json_each(?))"
        " UNION SELECT number, id, language, simhash, signature FROM stories"
        " WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)), json.dumps(list(numbers))),
    )
    return {number: (story_id, Banded(Language(language), *hashes)) for number, story_id, language, *hashes in rows}


def fingerprints(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Banded]:
    """Story ids -> fingerprints, of those that the ledger holds."""
    return dict(held(db, ids, ()).values())


def commit(db: sqlite3.Connection, batch: Batch) -> list[int]:
    """Write one batch in one transaction; how many of each story's matches were left out."""
    with transaction(db):
        for outcome in batch.outcomes:
            match outcome:
                case Fingerprinted():
                    _put(db, outcome)
                case Skipped(reason=Skip.UNCHANGED):
                    _touch(db, outcome)
                case Skipped(reason=reason) if reason in TEXT_IS_GONE:
                    remove(db, outcome.story.id)
            _settle(db, outcome)
        left_out = [candidates.nominate(db, matches) for matches in batch.matches]
        db.execute("UPDATE runs SET counts = ? WHERE run_id = ?", (json.dumps(batch.counts), batch.run_id))
        if batch.checkpoint is not None:
            put_checkpoint(db, batch.checkpoint)
    return left_out


def _put(db: sqlite3.Connection, outcome: Fingerprinted) -> None:
    story, made = outcome.story, outcome.fingerprint
    old = _leave(db, story.id)
    cursor = db.execute(  # REPLACE: an edited story has another number
        f"INSERT OR REPLACE INTO stories VALUES (NULL, {', '.join('?' * 13)})",
        (
            story.id,
            story.language,
            made.text_hash,
            made.simhash,
            made.signature,
            made.words,
            made.shingles,
            story.path,
            outcome.etag,
            story.author_id,
            story.title,
            story.published_at,
            story.updated_at,
        ),
    )
    changes.log(db, story.id, old, Banded(story.language, made.simhash), cursor.lastrowid)


def _touch(db: sqlite3.Connection, outcome: Skipped) -> None:
    """The text is as it was; what is told of it may have changed."""
    story = outcome.story
    db.execute(
        "UPDATE stories SET path = ?, etag = coalesce(?, etag), author_id = ?, title = ?, published_at = ?,"
        " updated_at = ? WHERE id = ?",
        (story.path, outcome.etag, story.author_id, story.title, story.published_at, story.updated_at, story.id),
    )


def remove(db: sqlite3.Connection, story_id: int) -> bool:
    """Take a story out of the ledger, within the caller's transaction; whether it was there."""
    old = _leave(db, story_id)
    if old is None:
        return False
    db.execute("DELETE FROM stories WHERE id = ?", (story_id,))
    changes.log(db, story_id, old, None, None)
    return True


def forget(db: sqlite3.Connection, story_id: int) -> bool:
    """Remove a story everywhere in the ledger; whether anything of it was there."""
    with transaction(db):
        there = remove(db, story_id)
        flags = db.execute("DELETE FROM flags WHERE a = ?1 OR b = ?1", (story_id,)).rowcount
        letters = db.execute("DELETE FROM dead_letters WHERE key = ?", (str(story_id),)).rowcount
    return there or flags + letters > 0


def _leave(db: sqlite3.Connection, story_id: int) -> Banded | None:
    """A story's text is about to change or go: what was said of its pairs holds no longer."""
    row = db.execute("SELECT language, simhash FROM stories WHERE id = ?", (story_id,)).fetchone()
    if row is None:
        return None
    db.execute("DELETE FROM candidates WHERE a = ?1 OR b = ?1", (story_id,))
    db.execute("UPDATE flags SET status = 'withdrawn' WHERE a = ?1 OR b = ?1", (story_id,))
    return Banded(Language(row[0]), row[1])


def _settle(db: sqlite3.Connection, outcome: Outcome) -> None:
    """Put a dead letter on record, or strike the one of a story that has recovered."""
    key = outcome.story.key
    if not isinstance(outcome, DeadLettered):
        db.execute("DELETE FROM dead_letters WHERE key = ?", (key,))
        return
    letter = json.dumps(asdict(outcome.story), ensure_ascii=False) if isinstance(outcome.story, Story) else None
    db.execute(
        "INSERT INTO dead_letters (key, reason, error, story, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
        " ON CONFLICT (key) DO UPDATE SET reason = ?2, error = ?3, story = ?4, attempts = attempts + 1, last_at = ?5",
        (key, outcome.reason, outcome.error, letter, now_ms()),
    )


def after(db: sqlite3.Connection, number: int, limit: int) -> list[Change]:
    """The next stories by number, each as the change that puts it into an empty index."""
    rows = db.execute(
        "SELECT number, id, language, simhash, signature FROM stories WHERE number > ? ORDER BY number LIMIT ?",
        (number, limit),
    )
    return [Change(0, story_id, None, Banded(Language(lang), *hashes), n) for n, story_id, lang, *hashes in rows]


def restart(db: sqlite3.Connection, version: str) -> None:
    """Empty the ledger of fingerprints, so that a backfill makes them all anew, as `version`.

    Flags stay on record, withdrawn until their pairs are verified again.
    """
    with transaction(db):
        for table in ("stories", "changes", "candidates"):
            db.execute(f"DELETE FROM {table}")
        db.execute("UPDATE flags SET status = 'withdrawn'")
        db.execute("DELETE FROM meta WHERE key IN ('checkpoint', 'watermark')")
        for key in ("fingerprint_version", "refingerprinting"):
            put(db, key, version)
        # A number that no change has: an index that is not cleared in time is seen to be behind.
        db.execute("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'changes'")


def describe(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, sqlite3.Row]:
    """Story ids -> all that the ledger knows of them."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        "SELECT * FROM stories WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )
    return {row["id"]: row for row in rows}


def last_number(db: sqlite3.Connection) -> int:
    """The highest number that a story has; 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(number), 0) FROM stories").fetchone()[0])


def in_language(
    db: sqlite3.Connection, language: Language, after: int, upto: int
) -> list[tuple[int, bytes, bytes | None]]:
    """Id, SimHash and signature of a language's stories with a number in (after, upto], in order."""
    return db.execute(
        "SELECT id, simhash, signature FROM stories WHERE number > ? AND number <= ? AND language = ? ORDER BY number",
        (after, upto, language),
    ).fetchall()
