"""The marks of stories: what is unusual about their pages, texts or labels, as the last reading found."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from neardup.ledger import forgotten, languages, now_ms
from neardup.ledger.compact_columns import packed_id
from neardup.records import Fingerprinted, Language, Marks, Outcome, Skip, Skipped

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class MarkCount:
    """How many stories of a language have a mark with this detail, "" for shares; `example` is the one marked last."""

    reason: str
    language: Language
    detail: str
    stories: int
    example: int


def put(db: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
    """Replace the marks of the stories whose pages were read, within the caller's transaction."""
    found = ((one, one.marks) for one in outcomes if isinstance(one, Fingerprinted | Skipped))
    read = [(one, marks) for one, marks in found if marks is not None]
    marked = [(one, marks) for one, marks in read if marks]
    since = _since(db, [one.story.id for one, _ in marked]) if marked else {}
    remove(db, [one.story.id for one, _ in read])
    if marked:
        db.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _rows(db, marked, since))


def _since(db: sqlite3.Connection, ids: Sequence[int]) -> dict[tuple[int, str], int]:
    """Since when these stories have their marks, by reason."""
    rows = db.execute(
        "SELECT story_id, reason, marked_at FROM marks WHERE story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    )
    return {(story_id, reason): at for story_id, reason, at in rows}


def _rows(
    db: sqlite3.Connection, marked: Sequence[tuple[Fingerprinted | Skipped, Marks]], since: dict[tuple[int, str], int]
) -> Iterator[Row]:
    """The rows of the stories that were not forgotten while their pages were read."""
    number_of, now = languages.numbers(db), now_ms()
    gone = forgotten.among(db, (one.story.id for one, _ in marked))
    for one, marks in marked:
        story = one.story
        is_skipped = isinstance(one, Skipped) and one.reason is not Skip.UNCHANGED
        names = (story.title or story.path, story.name) if is_skipped else (None, None)
        for mark in () if story.id in gone else marks:
            at = since.get((story.id, mark.reason), now)
            language, author = number_of[story.language], packed_id(story.author_id)
            yield story.id, mark.reason, mark.detail, language, at, author, *names


def remove(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Remove the marks of stories."""
    db.execute("DELETE FROM marks WHERE story_id IN (SELECT value FROM json_each(?))", (json.dumps(ids),))


def counts(db: sqlite3.Connection) -> list[MarkCount]:
    """The marks of all stories, by reason, language and detail; shares, such as "63 %", count as one detail."""
    rows = db.execute(
        "SELECT reason, l.name, iif(detail GLOB '* %', '', detail), count(*), story_id, max(marked_at) FROM marks"
        " JOIN languages l ON number = language GROUP BY 1, 2, 3 ORDER BY 1, number, 3"
    )
    return [MarkCount(*row[:-1]) for row in rows]
