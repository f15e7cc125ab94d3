"""A decision: one verdict on a pair, or on all pairs of a cluster."""

import sqlite3
from dataclasses import dataclass

from neardup.ledger import verdicts
from neardup.records import Verdict

NAMES = {
    Verdict.PLAGIARISM: "plagiarism",
    Verdict.REPOST: "author’s own repost",
    Verdict.QUOTATION: "quotation",
    Verdict.TEMPLATE: "template",
    Verdict.NOT_SIMILAR: "not similar",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict by a moderator on some pairs, a < b; `seen` identifies the state of their flags (`verdicts.state`)."""

    number: int
    verdict: Verdict
    moderator: str
    pairs: tuple[tuple[int, int], ...]
    is_undone: bool
    seen: str


def decision(db: sqlite3.Connection, number: int) -> Decision | None:
    """The decision with this number; None if there is none."""
    rows = verdicts.of_decision(db, number)
    if not rows:
        return None
    first = rows[0]
    pairs = tuple((row["a"], row["b"]) for row in rows)
    seen = verdicts.state(db, verdicts.flags_of(db, number))
    return Decision(number, Verdict(first["verdict"]), first["moderator"], pairs, first["undone_at"] is not None, seen)
