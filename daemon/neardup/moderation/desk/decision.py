"""A decision: one verdict on a pair, on a case, or on several cases."""

import sqlite3
from dataclasses import dataclass

from neardup.ledger import verdicts
from neardup.records import DECIDING, Verdict

OFFERED = (*DECIDING, Verdict.UNSURE)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict by a moderator on some pairs, a < b; `seen` identifies the state of their flags (`verdicts.state`).

    `cases` are the ids of their cases when they were decided.
    """

    number: int
    verdict: Verdict
    moderator: str
    pairs: tuple[tuple[int, int], ...]
    cases: frozenset[int]
    is_undone: bool
    seen: str


def decision(db: sqlite3.Connection, number: int) -> Decision | None:
    """The decision with this number; None if there is none."""
    rows = verdicts.of_decision(db, number)
    if not rows:
        return None
    first = rows[0]
    pairs = tuple((row["a"], row["b"]) for row in rows)
    cases = frozenset(row["case_id"] for row in rows if row["case_id"] is not None)
    seen = verdicts.state(db, verdicts.flags_of(db, number))
    is_undone = first["undone_at"] is not None
    return Decision(number, Verdict(first["verdict"]), first["moderator"], pairs, cases, is_undone, seen)
