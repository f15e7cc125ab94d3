"""The ledger's tables, which schema.sql defines, and the steps by which a ledger of an earlier schema gets them.

A command that writes upgrades the ledger that it opens, in one transaction; one of before OLDEST is refused unchanged.
Times are milliseconds since 1970 in UTC.  Most of the file consists of rows of `stories`; neardup.ledger.story_rows
says how their columns are stored, and the view `described` shows them unpacked.
"""

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from neardup.core.languages import LANGUAGES
from neardup.errors import Fatal

# The statements that make a ledger of each schema one of the next.
STEPS: Mapping[int, Sequence[str]] = {
    19: (
        "ALTER TABLE removed_texts ADD COLUMN number INTEGER",
        "ALTER TABLE removed_texts ADD COLUMN passages BLOB",
    ),
}
OLDEST, VERSION = min(STEPS), max(STEPS) + 1  # PRAGMA user_version; 1 to 18 were schemas of trial versions


def read_version(db: sqlite3.Connection) -> int:
    """The schema version of an open file; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the caller's transaction."""
    statement = ""
    for line in Path(__file__).with_name("schema.sql").read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
    db.executemany("INSERT INTO languages (number, name) VALUES (?, ?)", enumerate(LANGUAGES))
    db.execute("INSERT INTO meta VALUES ('ledger_id', ?)", (uuid.uuid4().hex,))
    db.execute(f"PRAGMA user_version = {VERSION}")


def upgrade(db: sqlite3.Connection) -> int:
    """Take the steps that a ledger lacks, within the caller's transaction; returns the version that it had."""
    former = read_version(db)
    for version in range(former, VERSION):
        for statement in STEPS[version]:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version + 1}")
    return former


def refuse_unknown_versions(version: int, path: object) -> None:
    """Raises Fatal for a file of a schema that is neither this one nor can be upgraded; an empty one (0) passes."""
    if version > VERSION:
        raise Fatal(f"the ledger {path} was written by a newer neardup (schema {version}, this one knows {VERSION})")
    if 0 < version < OLDEST:
        raise Fatal(
            f"the ledger {path} was written by a trial version (schema {version}, the oldest supported is {OLDEST}):"
            " move it away and run `neardup backfill`"
        )


def refuse_former_version(version: int, path: object) -> None:
    """Raises Fatal for a file that is to be upgraded before it is read."""
    if version < VERSION:
        raise Fatal(
            f"the ledger {path} was written by an earlier neardup (schema {version}, this one reads {VERSION}):"
            " `neardup doctor` upgrades it, as does a start of the daemon, a service or a run"
        )
