"""The stories that wait to be embedded, and what a day has cost so far."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neardup.ledger import transaction
from neardup.ledger.versions import Numbered

FIRST = (-1, 0)  # before every place in the queue


class Waiting(NamedTuple):
    """A story in the queue, and its place there: works before stories, then the latest version first."""

    story_id: int
    place: tuple[int, int]


def through(db: sqlite3.Connection) -> int:
    """The number of the last version that was put into the queue."""
    return int(db.execute("SELECT through FROM model").fetchone()[0])


def add(db: sqlite3.Connection, versions: Iterable[Numbered], through: int | None = None) -> None:
    """Put stories into the queue, whose versions up to a number are then considered."""
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO queue VALUES (?, ?)", versions)
        if through is not None:
            db.execute("UPDATE model SET through = ?", (through,))


def after(db: sqlite3.Connection, place: tuple[int, int], limit: int) -> list[Waiting]:
    """The next stories of the queue after a place."""
    rows = db.execute(
        "SELECT story_id, story_id >= 0, -number FROM queue WHERE (story_id >= 0, -number) > (?, ?)"
        " ORDER BY story_id >= 0, -number LIMIT ?",
        (*place, limit),
    )
    return [Waiting(story_id, (kind, number)) for story_id, kind, number in rows]


def drop(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Take stories out of the queue, within the caller's transaction."""
    db.executemany("DELETE FROM queue WHERE story_id = ?", ((story_id,) for story_id in ids))


def size(db: sqlite3.Connection) -> int:
    """How many stories wait."""
    return int(db.execute("SELECT count(*) FROM queue").fetchone()[0])


def spend(db: sqlite3.Connection, day: str, core_seconds: float, texts: int) -> None:
    """Add to what a day has cost, within the caller's transaction."""
    db.execute(
        "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " core_seconds = core_seconds + excluded.core_seconds, texts = texts + excluded.texts",
        (day, core_seconds, texts),
    )


def spent(db: sqlite3.Connection, day: str) -> tuple[float, int]:
    """The core seconds and the texts that a day has cost."""
    row = db.execute("SELECT core_seconds, texts FROM spent WHERE day = ?", (day,)).fetchone()
    return row or (0.0, 0)
