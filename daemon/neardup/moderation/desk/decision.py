"""A decision: one verdict on a pair, on all pairs of a cluster, or on a story: its pairs with its sources."""

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
    """A verdict by a moderator on some pairs, a < b; `seen` identifies the state of their flags (`verdicts.state`).

    `story` is the story that was decided as a whole, None for a pair or a cluster.
    """

    number: int
    verdict: Verdict
    moderator: str
    pairs: tuple[tuple[int, int], ...]
    story: int | None
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
    is_undone = first["undone_at"] is not None
    return Decision(number, Verdict(first["verdict"]), first["moderator"], pairs, first["story"], is_undone, seen)
