"""The titles of stories, for the index of titles and for those who search it.

A story without a title of the listing has that of its page; a story with neither is not in the index.
"""

import json
import sqlite3
from collections.abc import Sequence

from neardup.ledger import changes


def after(db: sqlite3.Connection, number: int, limit: int) -> list[tuple[int, str | None]]:
    """The next `limit` stories by number: their numbers, ascending, and their titles."""
    return db.execute(
        "SELECT number, coalesce(title, page_title) FROM stories WHERE number > ? ORDER BY number LIMIT ?",
        (number, limit),
    ).fetchall()


def changed_after(db: sqlite3.Connection, seq: int, limit: int) -> list[tuple[int, int, str | None]]:
    """The next `limit` titles that changed after `seq` while the text did not: (seq, number, title), ascending."""
    return db.execute(
        "SELECT seq, number, coalesce(title, page_title) FROM retitled JOIN stories USING (number) WHERE seq > ?"
        " ORDER BY seq LIMIT ?",
        (seq, limit),
    ).fetchall()


def ends(db: sqlite3.Connection) -> tuple[int, int]:
    """The last change, which numbers the last story, and the last change of a title alone; 0 where there is none."""
    (seq,) = db.execute("SELECT coalesce(max(seq), 0) FROM retitled").fetchone()
    return changes.last_seq(db), seq


def of_numbers(db: sqlite3.Connection, numbers: Sequence[int]) -> list[tuple[int, int, str | None]]:
    """Those of these stories that the ledger still has: (number, id, title), in descending order of number."""
    return db.execute(
        "SELECT number, id, coalesce(title, page_title) FROM stories WHERE number IN"
        " (SELECT value FROM json_each(?)) ORDER BY number DESC",
        (json.dumps(list(numbers)),),
    ).fetchall()
