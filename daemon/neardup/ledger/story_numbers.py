"""The numbers of all stories with their languages and ids, as compact arrays."""

import sqlite3

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers


def languages_after(db: sqlite3.Connection, number: int, limit: int) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """The next `limit` stories by number: their numbers, ascending, and the numbers of their languages."""
    rows = db.execute("SELECT number, language FROM stories WHERE number > ? ORDER BY number LIMIT ?", (number, limit))
    numbers, languages = np.array(rows.fetchall(), np.int64).reshape(-1, 2).T
    return numbers.astype(np.uint32), languages.astype(np.uint8)


def ids_after(db: sqlite3.Connection, story_id: int, limit: int) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The next `limit` stories by id: their numbers, and their ids, ascending."""
    # SQLite reads these from the index of ids, which is a small part of the table.
    rows = db.execute("SELECT number, id FROM stories WHERE id > ? ORDER BY id LIMIT ?", (story_id, limit))
    numbers, ids = np.array(rows.fetchall(), np.int64).reshape(-1, 2).T
    return numbers.astype(np.uint32), ids
