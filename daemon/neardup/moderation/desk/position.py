"""The position of a pair or a story in its queue, which moderators change while they work."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from neardup.ledger import flags, similarities
from neardup.moderation.desk.query import Queue, View

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
    """The current position of a pair, a < b, that was at position `at`; a queue of stories has no pairs."""
    if queue.view is View.STORIES:
        return QueuePosition(at, in_queue=False, before=None, after=None)
    first = max(at - MAX_SHIFT, 0)
    rows = flags.select(
        db,
        queue.selection,
        limit=2 * MAX_SHIFT + 2,
        offset=first,
        by_similarity=queue.view is View.SIMILARITY,
    )
    ids = [(row["story_id"], row["matched_id"]) for row in rows]
    return _position([(min(pair), max(pair)) for pair in ids], first, pair, at)


def story_position_of(db: sqlite3.Connection, queue: Queue, story_id: int, at: int) -> QueuePosition[int]:
    """The current position of a story that was at position `at` of a queue of stories."""
    first = max(at - MAX_SHIFT, 0)
    rows = similarities.selected(db, queue.selection, limit=2 * MAX_SHIFT + 2, offset=first)
    return _position([row["story_id"] for row in rows], first, story_id, at)


def _position(entries: Sequence[Entry], first: int, entry: Entry, at: int) -> QueuePosition[Entry]:
    """The position of an entry among those from position `first` on.

    An entry that has left the queue keeps its place before the entry that is there now.
    """
    in_queue = entry in entries
    n = entries.index(entry) if in_queue else min(at - first, len(entries))
    after = entries[n + in_queue : n + in_queue + 1]
    return QueuePosition(first + n, in_queue, entries[n - 1] if n else None, after[0] if after else None)
