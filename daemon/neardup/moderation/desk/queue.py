"""The queue of pairs: the flagged pairs of a selection, fifty a page."""

import sqlite3
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import flags, similarities, works
from neardup.ledger.flags import members_of
from neardup.moderation.desk.access import require_moderator
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import DECIDED, OPEN, STATUSES, Queue, number, queue_of

PAGE_SIZE = 50
LEAST_SIMILARITIES = (0.25, 0.5, 0.75)  # offered as filters


@dataclass(frozen=True, slots=True)
class QueuePage:
    """One page of a queue of `total` pairs.

    `counts` are the open flags by language, `catalogues` the names of all catalogues.  By all its filters, `decided`
    flags have a verdict and `left` have none; `hidden` flags between stories of one author are left out of them, or
    admitted if the queue admits them.  `done` is the decision that led here.
    """

    rows: list[dict[str, Any]]
    total: int
    decided: int
    left: int
    hidden: int
    counts: dict[str, int]
    catalogues: list[str]
    done: Decision | None


async def show(request: web.Request) -> web.Response:
    """GET /pairs."""
    require_moderator(request)
    config, at = desk_of(request).config, number(request.query, "page") or 1
    queue, first, done = queue_of(request.query, config), max(at - 1, 0) * PAGE_SIZE, number(request.query, "done")
    keeps = config.detection.same_author == "keep"
    queue_page = await desk_of(request).ledger.read(_queue_page, queue, first, done, keeps=keeps)
    return page(
        request,
        "pairs.html.j2",
        queue_page=queue_page,
        queue=queue,
        first=first,
        at=at,
        last=max(-(-queue_page.total // PAGE_SIZE), 1),
        languages=config.registry,
        kinds=kinds(),
        statuses=STATUSES,
        least_similarities=LEAST_SIMILARITIES,
    )


def _queue_page(db: sqlite3.Connection, queue: Queue, first: int, done: int | None, *, keeps: bool) -> QueuePage:
    led_here = None if done is None else decision(db, done)
    found = flags.select(db, queue.selection, limit=PAGE_SIZE, offset=first)
    same_author = queue.selection.same_author
    either, neither = (queue.only(same_author=shown).selection for shown in (True, False))
    hidden = 0 if keeps else flags.count(db, either) - flags.count(db, neither)
    return QueuePage(
        _described(db, [dict(row) for row in found]),
        flags.count(db, queue.selection),
        flags.count(db, queue.only(statuses=DECIDED).selection),
        flags.count(db, queue.only(statuses=OPEN).selection),
        hidden,
        {name: sum(of_kinds.values()) for name, of_kinds in flags.counts(db, same_author=same_author).items()},
        works.names(db),
        led_here,
    )


def _described(db: sqlite3.Connection, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of flags, with the size of the cluster of each, and the similarity of its later story."""
    size_of: dict[int, int] = {}
    similarity_of = similarities.shares(db, [row["story_id"] for row in rows])
    for row in rows:
        if row["story_id"] not in size_of:
            members = members_of(db, row["story_id"])
            size_of |= dict.fromkeys(members, len(members))
        row["cluster_size"] = size_of[row["story_id"]]
        row["similarity"] = similarity_of.get(row["story_id"])
    return rows
