"""Since when neardup knows a story, by its own clock: kept through edits, removal of the text, and refingerprinting."""

import json
import sqlite3
from collections.abc import Iterable, Sequence


def take(db: sqlite3.Connection, ids: Sequence[int], now: int) -> list[int]:
    """Since when each of these stories is known; `now` for a story that is new.  Within the caller's transaction."""
    among = json.dumps(ids)
    held = db.execute("SELECT id, known_since FROM stories WHERE id IN (SELECT value FROM json_each(?))", (among,))
    since = dict.fromkeys(ids, now) | dict(held)
    kept = db.execute(
        "DELETE FROM known_before WHERE story_id IN (SELECT value FROM json_each(?)) RETURNING story_id, known_since",
        (among,),
    )
    since |= dict(kept)
    return [since[story_id] for story_id in ids]


def keep(db: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Keep the times of stories that are about to be removed, in case they come back."""
    db.execute(
        "INSERT INTO known_before SELECT id, known_since FROM stories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )


def keep_all(db: sqlite3.Connection) -> None:
    """Keep the times of all stories, which are about to be removed."""
    db.execute("INSERT INTO known_before SELECT id, known_since FROM stories")


def forget(db: sqlite3.Connection, story_id: int) -> None:
    """Remove what was kept of a story."""
    db.execute("DELETE FROM known_before WHERE story_id = ?", (story_id,))
