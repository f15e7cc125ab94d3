"""Submitted stories and drafts.

A submitted story is written by itself, with all that its check found, in one transaction.

While one process looks a story up and writes it, another may write one that is like it.  So every submitted story is
unsettled at first: the process that holds the lock, whose indexes are in step with the ledger, looks it up once more.

A draft is a story that is not published yet, with its author, until it is published or expires.  It has the id that its
story will have, or has already if it is a new version of it.  Nothing nominates it, so it is never a match of another
text.
"""

import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from neardup.errors import NeardupError
from neardup.ledger import (
    AMONG,
    Row,
    candidates,
    dead_letters,
    dump_list,
    languages,
    marks,
    select_named_rows,
    similarities,
    stories,
    transaction,
    verification,
)
from neardup.ledger.candidates import Matches
from neardup.ledger.passages import FoundCommon
from neardup.records import (
    Assessment,
    BandedFingerprint,
    Candidate,
    Fingerprinted,
    Kind,
    Language,
    Outcome,
    Skip,
    Skipped,
    Story,
)

DRAFT_COLUMNS = "story_id, drafts.name, languages.name AS language, author_id, title, text, words, saved_at, expires_at"


class Submitted(Struct, frozen=True):
    """A submitted story with its matches, and those of the pairs that were verified, a.id < b.id.

    `page` is the path of the submitted page, for a story whose path is not given; `is_kept` says whether a path on
    record still has its page.  `unseen` returns the matches that the lookups may have missed because they were written
    meanwhile; it is called while no other process can write.
    """

    outcome: Fingerprinted
    page: str
    is_kept: Callable[[str], bool]
    matches: Matches
    assessed: Sequence[tuple[Candidate, Assessment | None]]
    unseen: Callable[[sqlite3.Connection], Matches]


class Stored(NamedTuple):
    """What was written: the story's outcome, its path and the path before, the new flags, and the matches unseen."""

    outcome: Outcome
    path_before: str | None
    flagged: Counter[tuple[Language, Kind]]
    unseen: Matches


def commit(db: sqlite3.Connection, submitted: Submitted, version: str, *, restore: bool) -> Stored:
    """Write a story as a listing would, in one transaction; a text that is on record already is not written again.

    What is not known of the story stays as it is on record.  `version` is that of the fingerprints.  Raises Forgotten
    for a forgotten story, unless it is to `restore` it.
    """
    from neardup.core.columns import Outcomes  # noqa: PLC0415 - with the parser of pages, which `count_unsettled` does without

    story = submitted.outcome.story
    with transaction(db):
        if restore:
            stories.undo_forget(db, story.id)
        else:
            stories.refuse_forgotten(db, story.id)
        before = _read_row(db, story.id)
        outcome = _make_outcome(submitted, before)
        outcomes = Outcomes.of([outcome])
        unchanged = [outcome] if isinstance(outcome, Skipped) else []
        stories.put_versions(db, outcomes.made)
        stories.update(db, unchanged)
        marks.put(db, outcomes.made, unchanged)
        dead_letters.settle(db, outcomes)
        unseen = submitted.unseen(db)
        for matches in (submitted.matches, unseen):
            candidates.nominate(db, matches)
        remove_draft(db, story.id)
        passages = submitted.outcome.fingerprint.passages
        db.execute("INSERT OR REPLACE INTO unsettled SELECT number, ? FROM stories WHERE id = ?", (passages, story.id))
        flagged = verification.put_verified(db, submitted.assessed, version)
        similarities.refresh(db)
    return Stored(outcome, None if before is None else before["path"], flagged, unseen)


def complete(db: sqlite3.Connection, story: Story) -> Story:
    """The story, with what is on record of it where nothing is given."""
    before = _read_row(db, story.id)
    return story if before is None else _complete(story, before)


def _read_row(db: sqlite3.Connection, story_id: int) -> Row | None:
    row: Row | None = select_named_rows(
        db,
        "SELECT text_hash, l.name AS language, path, CAST(author_id AS TEXT) AS author_id, title, published_at,"
        " updated_at, CAST(series_id AS TEXT) AS series_id FROM stories"
        " JOIN languages l ON l.number = language WHERE id = ?",
        (story_id,),
    ).fetchone()
    return row


def _make_outcome(submitted: Submitted, before: Row | None) -> Fingerprinted | Skipped:
    """The outcome of the story; `before` is what is on record."""
    made = submitted.outcome
    path = made.story.path or submitted.page
    if before is None:
        return replace(made, story=replace(made.story, path=path))
    story = _complete(made.story, before)
    if (before["text_hash"], before["language"]) != (made.fingerprint.text_hash, story.language):
        return replace(made, story=replace(story, path=path))
    held = before["path"]
    if held is not None and not submitted.is_kept(held):
        held = submitted.page
    unchanged = replace(story, path=made.story.path or held, updated_at=before["updated_at"])
    return Skipped(unchanged, Skip.UNCHANGED, marks=made.marks)


def _complete(story: Story, before: Row) -> Story:
    given = {name: getattr(story, name) for name in ("author_id", "title", "published_at", "series_id")}
    known: Story = replace(story, **{name: before[name] if value is None else value for name, value in given.items()})
    return known


class Unsettled(NamedTuple):
    """A version of a submitted story: its number, its id, its fingerprint, and its passage hashes of 4 bytes each."""

    number: int
    story_id: int
    banded: BandedFingerprint
    passages: bytes


def list_unsettled(db: sqlite3.Connection, limit: int) -> list[Unsettled]:
    """The first of them, by number; versions that were replaced or removed since are left out."""
    rows = db.execute(
        "SELECT number, id, language, simhash, signature, hashes FROM unsettled JOIN stories USING (number)"
        " ORDER BY number LIMIT ?",
        (limit,),
    )
    name_of = languages.map_names(db)
    return [
        Unsettled(number, story_id, BandedFingerprint(name_of[language], simhash, signature), hashes)
        for number, story_id, language, simhash, signature, hashes in rows
    ]


def settle(
    db: sqlite3.Connection, versions: Sequence[Unsettled], matches: Sequence[Matches], common: FoundCommon
) -> None:
    """Record what the lookups of these versions found, in one transaction."""
    numbers = dump_list(version.number for version in versions)
    with transaction(db):
        candidates.nominate_again(db, matches)
        verification.put_common(db, common)
        db.execute(
            f"DELETE FROM unsettled WHERE number {AMONG}"
            " OR NOT EXISTS (SELECT 1 FROM stories s WHERE s.number = unsettled.number)",
            (numbers,),
        )


def count_unsettled(db: sqlite3.Connection) -> int:
    """The number of submitted stories that are still to be looked up once more."""
    # CROSS JOIN, because SQLite would search all stories where it knows nothing of the sizes
    return int(db.execute("SELECT count(*) FROM unsettled CROSS JOIN stories USING (number)").fetchone()[0])


# Drafts.


class OfAnotherAuthor(NeardupError):
    """The story on record with the id of a draft is by another author, whose text would be left out of its check."""


class Draft(NamedTuple):
    """A draft; times are in milliseconds, and `words` is their number."""

    story_id: int
    name: str | None
    language: Language
    author_id: str
    title: str | None
    text: str
    words: int
    saved_at: int
    expires_at: int


def put_draft(db: sqlite3.Connection, draft: Draft) -> None:
    """Record a draft in place of the former one of its id.

    Raises Forgotten if the story was forgotten, OfAnotherAuthor if the one on record is by another author.
    """
    with transaction(db):
        stories.refuse_forgotten(db, draft.story_id)
        refuse_other_author(db, draft)
        values = draft._replace(
            language=languages.map_numbers(db)[draft.language],  # type: ignore[arg-type]
            text=zlib.compress(draft.text.encode("utf-8", "replace")),  # type: ignore[arg-type]
        )
        db.execute("INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def refuse_other_author(db: sqlite3.Connection, draft: Draft) -> None:
    """Raise OfAnotherAuthor if the story on record with the id of a draft is by another author."""
    found = db.execute("SELECT author_id FROM described WHERE id = ?", (draft.story_id,)).fetchone()
    if found is not None and found[0] not in (None, draft.author_id):
        raise OfAnotherAuthor(f"story {draft.name or draft.story_id} is by another author")


def find_draft(db: sqlite3.Connection, story_id: int, now: int) -> Draft | None:
    """The draft with this id, unless it has expired at a time."""
    row = select_named_rows(
        db,
        f"SELECT {DRAFT_COLUMNS} FROM drafts JOIN languages ON number = language WHERE story_id = ? AND expires_at > ?",
        (story_id, now),
    ).fetchone()
    return None if row is None else Draft(**{**row, "text": zlib.decompress(row["text"]).decode()})


def remove_draft(db: sqlite3.Connection, story_id: int) -> bool:
    """Remove a draft; returns whether there was one.  It may be within the caller's transaction."""
    return db.execute("DELETE FROM drafts WHERE story_id = ?", (story_id,)).rowcount > 0


def remove_expired(db: sqlite3.Connection, now: int) -> None:
    """Remove the drafts that have expired at a time."""
    if db.execute("SELECT 1 FROM drafts WHERE expires_at <= ? LIMIT 1", (now,)).fetchone():  # reading needs no turn
        db.execute("DELETE FROM drafts WHERE expires_at <= ?", (now,))
