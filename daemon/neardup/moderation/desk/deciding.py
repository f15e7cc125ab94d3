"""Decisions within the rights of their moderators: one verdict on a pair, on a case or on several; and taking it back.

A decision is stored as it was seen: what others did in between is a Conflict, as `ledger.verdicts` raises it.  A
verdict without the right to it raises NotPermitted.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from neardup.errors import Conflict
from neardup.ledger import Row, authors, case_queue, cases, flags, names, verdicts
from neardup.ledger.cases import Lease
from neardup.moderation.desk.addresses import Pair, ShownPair
from neardup.moderation.desk.moderators import Moderator
from neardup.records import DECIDING, PERMITTED, ShownId, Verdict

OFFERED = (*DECIDING, Verdict.UNSURE)


class Decision(Struct, frozen=True):
    """A verdict by a moderator on some pairs; `seen` identifies the state of their flags (`verdicts.identify_state`).

    `cases` are the ids of their cases when they were decided.  `undone_by` is None while it stands; `later` is the
    verdict that was built upon it, a row of `verdicts.find_built_upon`.
    """

    number: int
    verdict: Verdict
    note: str
    moderator: str
    decided_at: int
    pairs: tuple[ShownPair, ...]
    cases: tuple[ShownId, ...]
    undone_by: str | None
    later: Row | None
    seen: str

    @property
    def is_undone(self) -> bool:
        return self.undone_by is not None


def read_decision(db: sqlite3.Connection, number: int) -> Decision | None:
    """The decision with this number; None if there is none."""
    rows = verdicts.list_of_decision(db, number)
    if not rows:
        return None
    first = rows[0]
    case_ids = sorted({row["case_id"] for row in rows} - {None})
    shown = names.read_shown_ids(db, [*case_ids, *(row[side] for row in rows for side in "ab")])
    return Decision(
        number,
        Verdict(first["verdict"]),
        first["note"],
        first["moderator"],
        first["decided_at"],
        tuple((shown[row["a"]], shown[row["b"]]) for row in rows),
        tuple(shown[case_id] for case_id in case_ids),
        first["undone_by"],
        verdicts.find_built_upon(db, number),
        verdicts.identify_state(db, verdicts.list_flags(db, number)),
    )


class NewVerdict(Struct, frozen=True):
    """A verdict as a moderator gives it; `seen` is what `verdicts.identify_state` gave of the flags that were shown."""

    verdict: Verdict
    note: str
    moderator: Moderator
    seen: str = ""


def hold_case(db: sqlite3.Connection, case_id: int, moderator: Moderator) -> Lease:
    """Lease a case to a moderator.  Raises Held where another one holds it."""
    moderator.require(flags.read_languages(db, cases.list_flags(db, case_id)))
    lease = cases.take_lease(db, case_id, moderator.name)
    if lease.moderator != moderator.name:
        raise cases.explain_lease(lease)
    return lease


def decide_pair(db: sqlite3.Connection, pair: Pair, given: NewVerdict) -> int:
    """Decide one pair, a < b; returns the number of the decision."""
    row = flags.read_pair(db, *pair)
    return _decide(db, [row["flag_id"]] if row else [], given)


def decide_case(db: sqlite3.Connection, case_id: int, excepted: Collection[int], given: NewVerdict) -> int:
    """Decide the open flags of a case but those `excepted`; returns the number of the decision."""
    shown = list_open_flags(db, case_id)
    chosen = [flag_id for flag_id in shown if flag_id not in excepted]
    if shown and not chosen:
        raise Conflict("every pair of the case was left out")
    done = _decide(db, chosen, given, shown)
    cases.release_leases(db, given.moderator.name, [case_id])
    return done


def decide_cases(db: sqlite3.Connection, states: Mapping[int, str], given: NewVerdict) -> int:
    """Decide the open flags of several cases; returns the number of the decision.

    Each case comes with its `describe_state` as it was shown.
    """
    for case_id, state in states.items():
        row = case_queue.read_case(db, case_id)
        if row is None or describe_state(row) != state:
            [shown] = names.read_shown_ids(db, [case_id]).values()
            raise Conflict(f"the case of story {shown} has changed meanwhile: look at it again")
    chosen = [flag_id for case_id in states for flag_id in list_open_flags(db, case_id)]
    seen = verdicts.identify_state(db, chosen)
    done = _decide(db, chosen, NewVerdict(given.verdict, given.note, given.moderator, seen))
    cases.release_leases(db, given.moderator.name, states)
    return done


def reopen_case(db: sqlite3.Connection, case_id: int, given: NewVerdict) -> int:
    """Take back the verdicts on a case, for the reason in the note; returns the number of the decision."""
    return _decide(db, list_flags_of_case(db, case_id).decided, given)


def undo(db: sqlite3.Connection, decision: int, moderator: Moderator, seen: str) -> None:
    """Undo a decision, as `verdicts.undo` does."""
    moderator.require(verdicts.list_languages(db, decision))
    verdicts.undo(db, decision, moderator.name, seen)


def hide_author(db: sqlite3.Connection, author_id: str, given: NewVerdict) -> None:
    """Ask the platform to hide the undecided stories of an author, for the reason in the note."""
    given.moderator.require(authors.read_open_languages(db, author_id))
    authors.hide(db, author_id, given.note, given.moderator.name)


def show_author(db: sqlite3.Connection, author_id: str, given: NewVerdict) -> None:
    """Take back that the undecided stories of an author are hidden."""
    given.moderator.require(authors.read_open_languages(db, author_id))
    authors.show(db, author_id, given.moderator.name)


def list_open_flags(db: sqlite3.Connection, case_id: int) -> list[int]:
    """The ids of the open flags of a case: what a verdict on all of it decides."""
    return list_flags_of_case(db, case_id).open


class CaseFlags(NamedTuple):
    """The ids of the flags of a case: the open, those with a verdict, which opening it again reopens, the permitted."""

    open: list[int]
    decided: list[int]
    permitted: list[int]


def list_flags_of_case(db: sqlite3.Connection, case_id: int) -> CaseFlags:
    """The flags that count in a case, the most severe of each list first."""
    found = CaseFlags([], [], [])
    for flag_id, status in cases.read_statuses(db, case_id).items():
        {"open": found.open, PERMITTED: found.permitted}.get(status, found.decided).append(flag_id)
    return found


def describe_state(row: Mapping[str, Any]) -> str:
    """What changes when others decide a case, or when flags join it: a row of `case_queue.select`, in brief."""
    return f"{row['open_flags']} {row['flags']} {row['statuses']} {row['unsure']} {row['flagged_at']}"


def _decide(db: sqlite3.Connection, flag_ids: Sequence[int], given: NewVerdict, shown: Sequence[int] = ()) -> int:
    given.moderator.require(flags.read_languages(db, flag_ids))
    return verdicts.decide(db, flag_ids, given.verdict, given.note, given.moderator.name, given.seen, shown)
