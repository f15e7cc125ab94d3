"""The ledger's tables, which schema.sql defines.

There is one schema and no migration: no ledger of an earlier schema was ever released, and one is refused unchanged.
Times are milliseconds since 1970 in UTC.  Most of the file consists of rows of `stories`; neardup.ledger.story_rows
says how their columns are stored, and the view `described` shows them unpacked.
"""

import sqlite3
import uuid
from pathlib import Path

from neardup.core.languages import LANGUAGES
from neardup.errors import Fatal

VERSION = 19  # PRAGMA user_version; 1 to 18 were schemas of trial versions


def read_version(db: sqlite3.Connection) -> int:
    """The schema version of an open file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the caller's transaction."""
    statement = ""
    for line in _read_tables().splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
    db.executemany("INSERT INTO languages (number, name) VALUES (?, ?)", enumerate(LANGUAGES))
    db.execute("INSERT INTO meta VALUES ('ledger_id', ?)", (uuid.uuid4().hex,))
    db.execute(f"PRAGMA user_version = {VERSION}")


def _read_tables() -> str:
    return Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")


def refuse_other_versions(version: int, path: object) -> None:
    """Raises Fatal for a file of another schema; an empty one (0) passes."""
    if version > VERSION:
        raise Fatal(f"the ledger {path} was written by a newer neardup (schema {version}, this one knows {VERSION})")
    if 0 < version < VERSION:
        raise Fatal(
            f"the ledger {path} was written by a trial version (schema {version}, the first one read is {VERSION}):"
            " move it away and run `neardup backfill`"
        )
