"""The queue: the flags of a selection, worst first, fifty per page; and the search by story or author."""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import flags
from neardup.ledger.selection import Selection, members_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.login import require_name
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import DECIDED, OPEN, STATUSES, number, query_of, selection_of
from neardup.source.parse import id_of

PAGE_SIZE = 50
MAX_SHIFT = 50  # positions that a pair may have moved in the queue since its page was rendered


@dataclass(frozen=True, slots=True)
class QueuePage:
    """One page of a queue of `total` flags; by the same filters, `decided` flags have a verdict and `left` have none.

    `counts` are the open flags by language and kind; `done` is the decision that led here.
    """

    rows: list[dict[str, Any]]
    total: int
    decided: int
    left: int
    counts: dict[str, dict[str, int]]
    done: Decision | None


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a pair in a queue, from 0, and its neighbours; if not `in_queue`, the position it would have."""

    at: int
    in_queue: bool
    before: tuple[int, int] | None
    after: tuple[int, int] | None


async def show(request: web.Request) -> web.Response:
    """GET /."""
    require_name(request)
    selection, at = selection_of(request.query, desk_of(request).config.registry), number(request.query, "page") or 1
    first = max(at - 1, 0) * PAGE_SIZE
    queue_page = await desk_of(request).ledger.read(_queue_page, selection, first, number(request.query, "done"))
    return page(
        request,
        "queue.html.j2",
        queue_page=queue_page,
        selection=selection,
        first=first,
        at=at,
        last=max(-(-queue_page.total // PAGE_SIZE), 1),
        replace=replace,
        languages=desk_of(request).config.registry,
        kinds=kinds(),
        statuses=STATUSES,
    )


def _queue_page(db: sqlite3.Connection, selection: Selection, first: int, done: int | None) -> QueuePage:
    rows = [dict(row) for row in flags.select(db, selection, limit=PAGE_SIZE, offset=first)]
    size_of: dict[int, int] = {}
    for row in rows:
        if row["story_id"] not in size_of:
            members = members_of(db, row["story_id"])
            size_of |= dict.fromkeys(members, len(members))
        row["cluster_size"] = size_of[row["story_id"]]
    return QueuePage(
        rows,
        flags.count(db, selection),
        flags.count(db, replace(selection, statuses=DECIDED)),
        flags.count(db, replace(selection, statuses=OPEN)),
        flags.counts(db),
        None if done is None else decision(db, done),
    )


def position_of(db: sqlite3.Connection, selection: Selection, pair: tuple[int, int], at: int) -> QueuePosition:
    """The current position of a pair, a < b, that was at position `at`.

    A pair that has left the queue keeps its place before the pair that is there now.
    """
    first = max(at - MAX_SHIFT, 0)
    rows = flags.select(db, selection, limit=2 * MAX_SHIFT + 2, offset=first)
    pairs = [(min(ids), max(ids)) for ids in ((row["story_id"], row["matched_id"]) for row in rows)]
    in_queue = pair in pairs
    n = pairs.index(pair) if in_queue else min(at - first, len(pairs))
    after = pairs[n + in_queue : n + in_queue + 1]
    return QueuePosition(first + n, in_queue, pairs[n - 1] if n else None, after[0] if after else None)


async def search(request: web.Request) -> web.StreamResponse:
    """GET /search?q=: leads to the queue of a story or an author; asks which one if the id is both."""
    require_name(request)
    text = request.query.get("q", "").strip()
    found = await desk_of(request).ledger.read(_search, text) if text else []
    if len(found) == 1:
        raise web.HTTPSeeOther(f"/{query_of(found[0][1])}")
    return page(request, "search.html.j2", 200 if found else 404, text=text, found=found)


def _search(db: sqlite3.Connection, text: str) -> list[tuple[str, Selection, int]]:
    every = STATUSES["every"]
    candidates = [("author", Selection(statuses=every, author=text))]
    with suppress(ValueError):
        candidates.insert(0, ("story", Selection(statuses=every, story=id_of(text))))
    counted = [(name, selection, flags.count(db, selection)) for name, selection in candidates]
    return [result for result in counted if result[2]]
