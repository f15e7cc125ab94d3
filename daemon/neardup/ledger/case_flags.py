"""The flags of cases: their rows and their languages."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from neardup.ledger.flags import PAIR_COLUMNS
from neardup.records import Language


def described(db: sqlite3.Connection, flag_ids: Sequence[int]) -> list[dict[str, Any]]:
    """These flags as rows of `pairs`, in their order."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id IN (SELECT value FROM json_each(?))", (json.dumps(flag_ids),)
    )
    found = {row["flag_id"]: dict(row) for row in rows}
    return [found[flag_id] for flag_id in flag_ids if flag_id in found]


def languages_of(db: sqlite3.Connection, flag_ids: Sequence[int]) -> set[Language]:
    """The languages of these flags."""
    rows = db.execute(
        "SELECT DISTINCT name FROM flags JOIN languages ON number = language"
        " WHERE flag_id IN (SELECT value FROM json_each(?))",
        (json.dumps(flag_ids),),
    )
    return {Language(row[0]) for row in rows}
