"""Many stories at once, as arrays: what lookups bring up, and what an index is built from."""

import json
import sqlite3
from collections.abc import Iterable

from daemon.core.columns import Columns

READ = "SELECT number, id, language, simhash, signature FROM stories"


def after(db: sqlite3.Connection, number: int, limit: int) -> Columns:
    """The next stories by number, in order."""
    return Columns.of(db.execute(f"{READ} WHERE number > ? ORDER BY number LIMIT ?", (number, limit)))


def held(db: sqlite3.Connection, ids: Iterable[int], numbers: Iterable[int]) -> Columns:
    """Stories by id or by number, in order of their numbers, of those that the ledger holds."""
    rows = {
        row[0]: row
        for column, wanted in (("id", ids), ("number", numbers))
        for row in db.execute(f"{READ} WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(list(wanted)),))
    }
    return Columns.of(rows[number] for number in sorted(rows))
