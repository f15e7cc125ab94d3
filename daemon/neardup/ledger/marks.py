"""The marks of stories: what is unusual about their pages, texts or labels, as the last reading found."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from neardup.ledger import languages, now_ms
from neardup.ledger.compact_columns import packed_id
from neardup.records import Language, Marks, Skip, Skipped, Story

if TYPE_CHECKING:
    # with the parser of pages, which most readers do without
    from neardup.core.columns import FingerprintedStories

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class MarkCount:
    """How many stories of a language have a mark with this detail, "" for shares; `example` is the one marked last."""

    reason: str
    language: Language
    detail: str
    stories: int
    example: int


class MarkedStory(NamedTuple):
    """A story with marks; one that was skipped is not on record, and has its title or path, and its name, here."""

    story_id: int
    language: Language
    author_id: str | None
    marks: Marks
    title: str | None = None
    name: str | None = None


def put(db: sqlite3.Connection, made: "FingerprintedStories", skipped: Sequence[Skipped]) -> None:
    """Replace the marks of the stories whose pages were read, within the caller's transaction.

    None of them is forgotten.
    """
    listed = made.stories
    of_made = zip(listed.ids, listed.languages, listed.author_ids, made.pages.marks, strict=True)
    marked = [MarkedStory(*row) for row in of_made if row[-1]]
    marked += [_skipped(outcome.story, outcome.reason, outcome.marks) for outcome in skipped if outcome.marks]
    since = _since(db, [story.story_id for story in marked]) if marked else {}
    remove(db, [*listed.ids, *(outcome.story.id for outcome in skipped if outcome.marks is not None)])
    if marked:
        db.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _rows(db, marked, since))


def _skipped(story: Story, reason: Skip, marks: Marks) -> MarkedStory:
    names = (None, None) if reason is Skip.UNCHANGED else (story.title or story.path, story.name)
    return MarkedStory(story.id, story.language, story.author_id, marks, *names)


def _since(db: sqlite3.Connection, ids: Sequence[int]) -> dict[tuple[int, str], int]:
    """Since when these stories have their marks, by reason."""
    rows = db.execute(
        "SELECT story_id, reason, marked_at FROM marks WHERE story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    )
    return {(story_id, reason): at for story_id, reason, at in rows}


def _rows(db: sqlite3.Connection, marked: Sequence[MarkedStory], since: dict[tuple[int, str], int]) -> Iterator[Row]:
    number_of, now = languages.numbers(db), now_ms()
    for story in marked:
        for mark in story.marks:
            at = since.get((story.story_id, mark.reason), now)
            language, author = number_of[story.language], packed_id(story.author_id)
            yield story.story_id, mark.reason, mark.detail, language, at, author, story.title, story.name


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
