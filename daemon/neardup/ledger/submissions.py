"""Submitted stories: each is written by itself, with all that its check found, in one transaction."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from neardup.core.columns import Outcomes
from neardup.ledger import (
    candidates,
    dead_letters,
    forgotten,
    marks,
    reverification,
    similarities,
    stories,
    transaction,
    unsettled,
)
from neardup.ledger.candidates import Matches
from neardup.records import Assessment, Candidate, Fingerprinted, Kind, Language, Outcome, Skip, Skipped, Story


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submitted story with its matches, and those of the pairs that were verified, a.id < b.id.

    `page` is the path of the submitted page, for a story whose path is not given.  `unseen` returns the matches that
    the lookups may have missed because they were written meanwhile; it is called while no other process can write.
    """

    outcome: Fingerprinted
    page: str
    matches: Matches
    assessed: Sequence[tuple[Candidate, Assessment | None]]
    unseen: Callable[[sqlite3.Connection], Matches]


class Stored(NamedTuple):
    """What was written: the story's outcome, its path and the path before, the new flags, and the matches unseen."""

    outcome: Outcome
    path_before: str | None
    flagged: Counter[tuple[Language, Kind]]
    unseen: Matches


def commit(db: sqlite3.Connection, submitted: Submitted, version: str, *, again: bool) -> Stored:
    """Write a story as a listing would, in one transaction; a text that is on record already is not written again.

    What is not known of the story stays as it is on record.  `version` is that of the fingerprints.  Raises Forgotten
    for a forgotten story, unless it is to be stored `again`.
    """
    story = submitted.outcome.story
    with transaction(db):
        if again:
            forgotten.undo(db, story.id)
        else:
            forgotten.refuse(db, story.id)
        before = _on_record(db, story.id)
        outcome = _outcome(submitted, before)
        outcomes = Outcomes.of([outcome])
        unchanged = [outcome] if isinstance(outcome, Skipped) else []
        stories.put_versions(db, outcomes.made)
        stories.update(db, unchanged)
        marks.put(db, outcomes.made, unchanged)
        dead_letters.settle(db, outcomes)
        unseen = submitted.unseen(db)
        for matches in (submitted.matches, unseen):
            candidates.nominate(db, matches)
        unsettled.put(db, story.id, submitted.outcome.fingerprint.passages)
        flagged = reverification.put_verified(db, submitted.assessed, version)
        similarities.refresh(db)
    return Stored(outcome, None if before is None else before["path"], flagged, unseen)


def completed(db: sqlite3.Connection, story: Story) -> Story:
    """The story, with what is on record of it where nothing is given."""
    before = _on_record(db, story.id)
    return story if before is None else _completed(story, before)


def _on_record(db: sqlite3.Connection, story_id: int) -> sqlite3.Row | None:
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    row: sqlite3.Row | None = cursor.execute(
        "SELECT text_hash, l.name AS language, path, CAST(author_id AS TEXT) AS author_id, title, published_at,"
        " updated_at FROM stories JOIN languages l ON l.number = language WHERE id = ?",
        (story_id,),
    ).fetchone()
    return row


def _outcome(submitted: Submitted, before: sqlite3.Row | None) -> Fingerprinted | Skipped:
    """The outcome of the story; `before` is what is on record."""
    made = submitted.outcome
    path = made.story.path or submitted.page
    if before is None:
        return replace(made, story=replace(made.story, path=path))
    story = _completed(made.story, before)
    if (before["text_hash"], before["language"]) != (made.fingerprint.text_hash, story.language):
        return replace(made, story=replace(story, path=path))
    unchanged = replace(story, path=made.story.path or before["path"], updated_at=before["updated_at"])
    return Skipped(unchanged, Skip.UNCHANGED, marks=made.marks)


def _completed(story: Story, before: sqlite3.Row) -> Story:
    given = {name: getattr(story, name) for name in ("author_id", "title", "published_at")}
    known: Story = replace(story, **{name: before[name] if value is None else value for name, value in given.items()})
    return known
