"""The position of a pair or a case in its queue, which moderators change while they work."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from neardup.ledger import case_queue, cases, flags
from neardup.moderation.desk.case_query import CaseQueue
from neardup.moderation.desk.query import Queue

MAX_SHIFT = 50  # positions that an entry may have moved in the queue since its page was rendered

Entry = TypeVar("Entry")
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class QueuePosition(Generic[Entry]):
    """The position of an entry in a queue, from 0, and its neighbours.

    If it is not `in_queue`, the position is the one that it would have.
    """

    at: int
    in_queue: bool
    before: Entry | None
    after: Entry | None


def position_of(db: sqlite3.Connection, queue: Queue, pair: Pair, at: int) -> QueuePosition[Pair]:
    """The current position of a pair, a < b, that was at position `at`."""
    first = max(at - MAX_SHIFT, 0)
    rows = flags.select(db, queue.selection, limit=2 * MAX_SHIFT + 2, offset=first)
    ids = [(row["story_id"], row["matched_id"]) for row in rows]
    return _position([(min(pair), max(pair)) for pair in ids], first, pair, at)


def case_position_of(db: sqlite3.Connection, queue: CaseQueue, case_id: int, at: int) -> QueuePosition[int]:
    """The current position of a case that was at position `at`; its neighbours are cases that no other holds."""
    first = max(at - MAX_SHIFT, 0)
    found = case_queue.select_ids(db, queue.selection, queue.order, limit=2 * MAX_SHIFT + 2, offset=first)
    mine = queue.selection.moderator
    held = {n for n, lease in cases.leases_held(db, found).items() if lease.moderator != mine} - {case_id}
    here = _position(found, first, case_id, at)
    n = here.at - first
    return replace(
        here,
        before=next((one for one in reversed(found[:n]) if one not in held), None),
        after=next((one for one in found[n + here.in_queue :] if one not in held), None),
    )


def _position(entries: Sequence[Entry], first: int, entry: Entry, at: int) -> QueuePosition[Entry]:
    """The position of an entry among those from position `first` on.

    An entry that has left the queue keeps its place before the entry that is there now.
    """
    in_queue = entry in entries
    n = entries.index(entry) if in_queue else min(at - first, len(entries))
    after = entries[n + in_queue : n + in_queue + 1]
    return QueuePosition(first + n, in_queue, entries[n - 1] if n else None, after[0] if after else None)
