"""The marks of stories: what is unusual about their pages, texts or labels, as the last reading found."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from neardup.ledger import languages, now_ms
from neardup.records import Fingerprinted, Language, Marks, Outcome, Skipped, Story


@dataclass(frozen=True, slots=True)
class MarkCount:
    """How many stories of a language have a mark with this detail; `example` is the one marked last."""

    reason: str
    language: Language
    detail: str
    stories: int
    example: int


def put(db: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
    """Replace the marks of the stories whose pages were read, within the caller's transaction."""
    found = [(one.story, one.marks) for one in outcomes if isinstance(one, Fingerprinted | Skipped)]
    read = [(story, marks) for story, marks in found if marks is not None]
    remove(db, [story.id for story, _ in read])
    if any(marks for _, marks in read):
        _insert(db, read)


def _insert(db: sqlite3.Connection, read: Sequence[tuple[Story, Marks]]) -> None:
    number_of, at = languages.numbers(db), now_ms()
    db.executemany(
        "INSERT INTO marks VALUES (?, ?, ?, ?, ?)",
        (
            (story.id, mark.reason, mark.detail, number_of[story.language], at)
            for story, marks in read
            for mark in marks
        ),
    )


def remove(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Remove the marks of stories."""
    db.execute("DELETE FROM marks WHERE story_id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))


def counts(db: sqlite3.Connection) -> list[MarkCount]:
    """The marks of all stories, by reason, language and detail."""
    rows = db.execute(
        "SELECT reason, name, detail, count(*), story_id, max(marked_at) FROM marks"
        " JOIN languages ON number = language GROUP BY 1, 2, 3 ORDER BY 1, number, 3"
    )
    return [MarkCount(*row[:-1]) for row in rows]
