"""What ledger and disk hold of submitted and of forgotten stories."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from neardup.ledger import forgotten, unsettled
from neardup.pipeline import submitted_pages


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """The submitted pages on disk, the submitted stories still to be looked up once more, and the forgotten stories."""

    pages: int
    unsettled: int
    forgotten: int


def status(db: sqlite3.Connection, ledger: Path) -> SubmissionStatus:
    return SubmissionStatus(len(submitted_pages.kept(ledger)), unsettled.count(db), forgotten.count(db))


def summary(db: sqlite3.Connection, ledger: Path) -> str:
    """The pages on disk in one line, for `doctor`."""
    unused = sum(1 for _ in submitted_pages.unused(db, ledger))
    return f"{len(submitted_pages.kept(ledger)):,} pages of submitted stories, {unused:,} files that no story needs"
