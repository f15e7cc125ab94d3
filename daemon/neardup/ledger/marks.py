"""The marks of stories: what is unusual about their pages, texts or labels, as the last reading found.

A mark stays until the page is read again without a cause for it, and keeps the time at which the story first had it.
A skipped story may have no row in `stories`, so its marks carry its title and its name.  The lists and counts of marked
stories leave out the works of the reference.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from neardup.errors import Fatal
from neardup.ledger import AMONG, dump_list, join_conditions, languages, list_conditions, now_ms, story_rows
from neardup.ledger.story_rows import pack_id
from neardup.records import Language, Mark, MarkReason, Marks, ShownId, Skip, Skipped, Story

if TYPE_CHECKING:
    from neardup.core.columns import FingerprintedStories


STORIES = "story_id >= 0"  # the ids of works are negative
Row = tuple[object, ...]


class MarkCount(Struct, frozen=True):
    """How many stories of a language have a mark with this detail, "" for shares; `example` is the one marked last."""

    reason: str
    language: Language
    detail: str
    stories: int
    example: ShownId


class StoryMarks(NamedTuple):
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
    with_marks = [StoryMarks(*row) for row in of_made if row[-1]]
    with_marks += [_mark_skipped(outcome.story, outcome.reason, outcome.marks) for outcome in skipped if outcome.marks]
    since = _read_since(db, [story.story_id for story in with_marks]) if with_marks else {}
    remove(db, [*listed.ids, *(outcome.story.id for outcome in skipped if outcome.marks is not None)])
    if with_marks:
        db.executemany("INSERT INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _list_rows(db, with_marks, since))


def _mark_skipped(story: Story, reason: Skip, marks: Marks) -> StoryMarks:
    names = (None, None) if reason is Skip.UNCHANGED else (story.title or story.path, story.name)
    return StoryMarks(story.id, story.language, story.author_id, marks, *names)


def _read_since(db: sqlite3.Connection, ids: Sequence[int]) -> dict[tuple[int, str], int]:
    """Since when these stories have their marks, by reason."""
    rows = db.execute(f"SELECT story_id, reason, marked_at FROM marks WHERE story_id {AMONG}", (dump_list(ids),))
    return {(story_id, reason): at for story_id, reason, at in rows}


def _list_rows(
    db: sqlite3.Connection, with_marks: Sequence[StoryMarks], since: dict[tuple[int, str], int]
) -> Iterator[Row]:
    number_of, now = languages.map_numbers(db), now_ms()
    for story in with_marks:
        for mark in story.marks:
            at = since.get((story.story_id, mark.reason), now)
            language, author = number_of[story.language], pack_id(story.author_id)
            yield story.story_id, mark.reason, mark.detail, language, at, author, story.title, story.name


def remove(db: sqlite3.Connection, ids: Sequence[int]) -> int:
    """Remove the marks of stories; returns their number."""
    return db.execute(f"DELETE FROM marks WHERE story_id {AMONG}", (dump_list(ids),)).rowcount


def mark_counts(db: sqlite3.Connection) -> list[MarkCount]:
    """The marks of all stories, by reason, language and detail; shares, such as "63 %", count as one detail."""
    rows = db.execute(
        "SELECT reason, l.name, iif(detail GLOB '* %', '', detail), count(*), story_id, max(marked_at) FROM marks"
        " JOIN languages l ON number = language GROUP BY 1, 2, 3 ORDER BY 1, number, 3"
    ).fetchall()
    shown = story_rows.read_shown_ids(db, [row[4] for row in rows])
    return [MarkCount(row[0], row[1], row[2], row[3], shown[row[4]]) for row in rows]


class MarkFilter(Struct, frozen=True):
    """A selection of marked stories: by a reason, by languages, by an author, or all."""

    reason: str | None = None
    languages: Sequence[Language] = ()
    author: str | None = None

    def make_condition(self, db: sqlite3.Connection) -> tuple[str, list[object]]:
        """The selection as an SQL condition on `marks`, with its values."""
        number_of = languages.map_numbers(db)
        chosen = [number_of[language] for language in self.languages if language in number_of]
        clauses = list_conditions(
            (
                ("story_id IN (SELECT story_id FROM marks WHERE reason = ?)", self.reason),
                (f"language {AMONG}", dump_list(chosen) if self.languages else None),
                ("author_id = ?", pack_id(self.author)),
            )
        )
        return join_conditions([(STORIES, []), *clauses])


class MarkedStory(Struct, frozen=True):
    """A story with its marks; `marked_at` (milliseconds) is when it got the latest of them."""

    story_id: ShownId
    language: Language
    author_id: str | None
    title: str
    marks: Marks
    marked_at: int


class MarkedAuthor(Struct, frozen=True):
    """An author, None for all who are not known, with the number of marked stories, in all and by reason."""

    author_id: str | None
    stories: int
    reasons: dict[str, int]


def list_stories(db: sqlite3.Connection, choice: MarkFilter, limit: int = -1) -> list[MarkedStory]:
    """The selected stories with all their marks, those marked last first."""
    condition, values = choice.make_condition(db)
    rows = db.execute(
        "SELECT coalesce(d.name, m.name, m.story_id), l.name, CAST(m.author_id AS TEXT),"
        " coalesce(d.title, m.title, m.name, CAST(m.story_id AS TEXT)), m.marks, m.at FROM"
        " (SELECT story_id, language, author_id, max(title) AS title, max(name) AS name, max(marked_at) AS at,"
        f" json_group_array(json_array(reason, detail)) AS marks FROM marks WHERE {condition}"
        " GROUP BY story_id ORDER BY at DESC, story_id DESC LIMIT ?) m"
        " JOIN languages l ON l.number = m.language LEFT JOIN described d ON d.id = m.story_id"
        " ORDER BY m.at DESC, m.story_id DESC",
        (*values, limit),
    )
    return [
        MarkedStory(shown, language, author, title, _make_marks(found), at)
        for shown, language, author, title, found, at in rows
    ]


def count_stories(db: sqlite3.Connection, choice: MarkFilter) -> tuple[int, dict[str, int]]:
    """The number of selected stories, and of those with each reason."""
    condition, values = choice.make_condition(db)
    [total] = db.execute(f"SELECT count(DISTINCT story_id) FROM marks WHERE {condition}", values).fetchone()
    rows = db.execute(f"SELECT reason, count(*) FROM marks WHERE {condition} GROUP BY 1 ORDER BY 1", values)
    return total, dict(rows)


def list_authors(db: sqlite3.Connection, choice: MarkFilter, limit: int = -1) -> list[MarkedAuthor]:
    """The authors of the selected stories, those with the most of them first."""
    condition, values = choice.make_condition(db)
    stories = db.execute(
        f"SELECT CAST(author_id AS TEXT), count(DISTINCT story_id) FROM marks WHERE {condition}"
        " GROUP BY author_id ORDER BY 2 DESC, author_id LIMIT ?",
        (*values, limit),
    ).fetchall()
    reasons = defaultdict[str | None, dict[str, int]](dict)
    for author, reason, n in db.execute(
        f"SELECT CAST(author_id AS TEXT), reason, count(*) FROM marks WHERE {condition} GROUP BY author_id, reason",
        values,
    ):
        reasons[author][reason] = n
    return [MarkedAuthor(author, n, reasons[author]) for author, n in stories]


def read_marks(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Marks]:
    """The marks of the marked stories among these ids."""
    rows = db.execute(
        "SELECT story_id, json_group_array(json_array(reason, detail)) FROM marks"
        f" WHERE story_id {AMONG} GROUP BY story_id",
        (dump_list(ids),),
    )
    return {story_id: _make_marks(found) for story_id, found in rows}


def _make_marks(found: str) -> Marks:
    return tuple(Mark(MarkReason(reason), detail) for reason, detail in sorted(json.loads(found)))


def explain_no_fingerprint(db: sqlite3.Connection, story_id: int, argument: str) -> Fatal:
    """The error about a story, named by this argument, that has no fingerprint; it names the marks of a marked one."""
    if found := read_marks(db, [story_id]):
        return Fatal(f"story {argument} has no fingerprint: it is marked as {describe_marks(found[story_id])}")
    return Fatal(f"story {argument} is not in the ledger")


def describe_marks(marks: Marks) -> str:
    """Marks as the commands print them."""
    return ", ".join(map(str, marks))
