"""The queue: the flags of a selection, the worst first, fifty a page; the search for those of a story or an author."""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import flags
from neardup.ledger.selection import Selection, members_of
from neardup.moderation.desk.decided import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.people import named
from neardup.moderation.desk.query import JUDGED, OPEN, STATUSES, number, query_of, selection_of
from neardup.source.parse import id_of

PAGE = 50
REACH = 50  # places that a pair may have moved in the queue since its page was made


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of a queue of `total` flags; of those under the same filters `judged` are judged, `left` are not."""

    rows: list[dict[str, Any]]
    total: int
    judged: int
    left: int
    counts: dict[str, dict[str, int]]
    done: Decision | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pair `stands` in a queue, from 0, or would; its neighbours, None where it is the first or the last."""

    at: int
    stands: bool
    before: tuple[int, int] | None
    after: tuple[int, int] | None


async def show(request: web.Request) -> web.Response:
    """GET /."""
    named(request)
    selection, at = selection_of(request.query, desk_of(request).config.registry), number(request.query, "page") or 1
    first = max(at - 1, 0) * PAGE
    listed = await desk_of(request).ledger.read(_listed, selection, first, number(request.query, "done"))
    return page(
        request,
        "queue.html.j2",
        listed=listed,
        selection=selection,
        first=first,
        at=at,
        last=max(-(-listed.total // PAGE), 1),
        replace=replace,
        languages=desk_of(request).config.registry,
        kinds=kinds(),
        statuses=STATUSES,
    )


def _listed(db: sqlite3.Connection, selection: Selection, first: int, done: int | None) -> Listed:
    rows = [dict(row) for row in flags.select(db, selection, limit=PAGE, offset=first)]
    size_of: dict[int, int] = {}
    for row in rows:
        if row["story_id"] not in size_of:
            members = members_of(db, row["story_id"])
            size_of |= dict.fromkeys(members, len(members))
        row["cluster_size"] = size_of[row["story_id"]]
    return Listed(
        rows,
        flags.count(db, selection),
        flags.count(db, replace(selection, statuses=JUDGED)),
        flags.count(db, replace(selection, statuses=OPEN)),
        flags.counts(db),
        None if done is None else decision(db, done),
    )


def place(db: sqlite3.Connection, selection: Selection, pair: tuple[int, int], at: int) -> Place:
    """Where a pair, a < b, that stood at a place stands now; one that has left would stand before what is there."""
    first = max(at - REACH, 0)
    rows = flags.select(db, selection, limit=2 * REACH + 2, offset=first)
    pairs = [(min(ids), max(ids)) for ids in ((row["story_id"], row["matched_id"]) for row in rows)]
    stands = pair in pairs
    n = pairs.index(pair) if stands else min(at - first, len(pairs))
    after = pairs[n + stands : n + stands + 1]
    return Place(first + n, stands, pairs[n - 1] if n else None, after[0] if after else None)


async def search(request: web.Request) -> web.StreamResponse:
    """GET /search?q=: to the queue of a story's flags, or of an author's; asks which, where it could be either."""
    named(request)
    said = request.query.get("q", "").strip()
    found = await desk_of(request).ledger.read(_found, said) if said else []
    if len(found) == 1:
        raise web.HTTPSeeOther(f"/{query_of(found[0][1])}")
    return page(request, "found.html.j2", 200 if found else 404, said=said, found=found)


def _found(db: sqlite3.Connection, said: str) -> list[tuple[str, Selection, int]]:
    every = STATUSES["every"]
    asked = [("author", Selection(statuses=every, author=said))]
    with suppress(ValueError):
        asked.insert(0, ("story", Selection(statuses=every, story=id_of(said))))
    counted = [(what, selection, flags.count(db, selection)) for what, selection in asked]
    return [one for one in counted if one[2]]
