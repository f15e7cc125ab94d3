"""The position of a case in its queue, and of a pair in its case, which moderators change while they work."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neardup.ledger import case_queue, cases, flags
from neardup.moderation.desk.case_query import CaseQueue

MAX_SHIFT = 50  # positions that a case may have moved in the queue since its page was rendered

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a case in a queue, from 0, and its neighbours, which are cases that no other moderator holds.

    If it is not `in_queue`, the position is the one that it would have.
    """

    at: int
    in_queue: bool
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class PlaceInCase:
    """The case of a pair, its neighbours among the pairs of the case, and the next one without a verdict.

    There are no neighbours of a pair that does not count in the case, and no case of a flag that was withdrawn.
    """

    case_id: int | None
    before: Pair | None = None
    after: Pair | None = None
    next_open: Pair | None = None


def case_position_of(db: sqlite3.Connection, queue: CaseQueue, case_id: int, at: int) -> QueuePosition:
    """The current position of a case that was at position `at`.

    A case that has left the queue keeps its place before the case that is there now.
    """
    first = max(at - MAX_SHIFT, 0)
    found = case_queue.select_ids(db, queue.selection, queue.order, limit=2 * MAX_SHIFT + 2, offset=first)
    mine = queue.selection.moderator
    held = {n for n, lease in cases.leases_held(db, found).items() if lease.moderator != mine} - {case_id}
    in_queue = case_id in found
    n = found.index(case_id) if in_queue else min(at - first, len(found))
    return QueuePosition(
        first + n,
        in_queue,
        before=next((other for other in reversed(found[:n]) if other not in held), None),
        after=next((other for other in found[n + in_queue :] if other not in held), None),
    )


def place_in_case(db: sqlite3.Connection, pair: Pair) -> PlaceInCase:
    """The place of a pair, a < b, in its case, whose most severe pairs come first.

    The pairs without a verdict are walked through from this one to the last, and then from the first one on.
    """
    row = flags.of_pair(db, *pair)
    case_id = None if row is None else cases.of_story(db, row["story_id"])
    if row is None or case_id is None:
        return PlaceInCase(None)
    statuses = cases.statuses_of(db, case_id)
    ids = list(statuses)
    n = ids.index(row["flag_id"]) if row["flag_id"] in statuses else len(ids)
    to_decide = [flag_id for flag_id in (*ids[n + 1 :], *ids[:n]) if statuses[flag_id] == "open"]
    places = (ids[n - 1 : n] if n < len(ids) else [], ids[n + 1 : n + 2], to_decide[:1])
    described = flags.list_pairs(db, [flag_id for place in places for flag_id in place])
    pair_of = {flag["flag_id"]: _pair(flag) for flag in described}
    return PlaceInCase(case_id, *(pair_of[place[0]] if place else None for place in places))


def _pair(flag: Mapping[str, Any]) -> Pair:
    a, b = sorted((flag["story_id"], flag["matched_id"]))
    return a, b
