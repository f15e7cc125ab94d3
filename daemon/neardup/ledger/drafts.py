"""Drafts: stories that are not published yet, each with its author, until they are published or expire.

A draft has the id that its story will have, or has already if it is a new version of it.  It is no story: nothing
nominates it, so it is never a match of another text.
"""

import sqlite3
import zlib
from typing import NamedTuple

from neardup.errors import NeardupError
from neardup.ledger import languages, select_named_rows, transaction
from neardup.ledger.stories import refuse_forgotten
from neardup.records import Language

COLUMNS = "story_id, drafts.name, languages.name AS language, author_id, title, text, words, saved_at, expires_at"


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
        refuse_forgotten(db, draft.story_id)
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
        f"SELECT {COLUMNS} FROM drafts JOIN languages ON number = language WHERE story_id = ? AND expires_at > ?",
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
