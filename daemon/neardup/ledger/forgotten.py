"""The stories that were forgotten on request, which no listing brings back."""

import json
import sqlite3
from collections.abc import Iterable

from neardup.errors import Forgotten
from neardup.ledger import now_ms


def record_forgotten(db: sqlite3.Connection, story_id: int) -> None:
    """Record that a story is forgotten."""
    db.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (story_id, now_ms()))


def undo(db: sqlite3.Connection, story_id: int) -> bool:
    """Let listings bring a story back; returns whether it was forgotten."""
    return db.execute("DELETE FROM forgotten WHERE story_id = ?", (story_id,)).rowcount > 0


def forgotten_among(db: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Which of these stories are forgotten."""
    rows = db.execute(
        "SELECT story_id FROM forgotten WHERE story_id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )
    return {row[0] for row in rows}


def refuse(db: sqlite3.Connection, story_id: int) -> None:
    """Raise Forgotten for a story that is forgotten."""
    if forgotten_among(db, [story_id]):
        raise Forgotten(f"story {story_id} was forgotten on request")


def count_forgotten(db: sqlite3.Connection) -> int:
    """The number of forgotten stories."""
    return int(db.execute("SELECT count(*) FROM forgotten").fetchone()[0])
