"""What the self-checks found last, for `neardup status`."""

import sqlite3
from dataclasses import dataclass

from neardup.ledger import recalls
from neardup.ledger.recalls import Compared, Measure
from neardup.timestamps import rfc3339


@dataclass(frozen=True, slots=True)
class RecallOf:
    """How many of some copies were found; `fewer_than_before` is when clearly more were found in the month before."""

    language: str
    subject: str
    found: int
    total: int
    fewer_than_before: bool


@dataclass(frozen=True, slots=True)
class RecallStatus:
    """A self-check: when it measured last (RFC 3339), and the recall of each language and subject."""

    measure: str
    measured_at: str | None
    recalls: list[RecallOf]


def statuses(db: sqlite3.Connection) -> list[RecallStatus]:
    """The last measurement of each self-check that ever measured."""
    measured = ((measure, recalls.latest(db, measure)) for measure in Measure)
    return [
        RecallStatus(measure, rfc3339(latest[0]), list(map(_recall_of, latest[1])))
        for measure, latest in measured
        if latest is not None
    ]


def _recall_of(one: Compared) -> RecallOf:
    recall = one.recall
    return RecallOf(recall.language, recall.subject, recall.found, recall.total, one.is_lower)
