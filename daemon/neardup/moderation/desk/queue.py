"""The queue: the flagged pairs of a selection, or the stories that copy, fifty a page; and the search."""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import flags, similarities
from neardup.ledger.selection import Selection, members_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.login import require_name
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import DECIDED, EVERY, OPEN, STATUSES, Queue, View, number, query_of, queue_of
from neardup.source.parse import id_of

PAGE_SIZE = 50
LEAST_SIMILARITIES = (0.25, 0.5, 0.75)  # offered as filters
VIEWS = {
    View.PAIRS: "Pairs by severity",
    View.SIMILARITY: "Pairs by similarity",
    View.STORIES: "Stories by similarity",
}


@dataclass(frozen=True, slots=True)
class QueuePage:
    """One page of a queue of `total` entries.

    `counts` are the open flags by language, or the stories by language, by the other filters of the queue.  By all its
    filters, `decided` flags have a verdict and `left` have none; `hidden` flags between stories of one author are left
    out of them, or admitted if the queue admits them.  `done` is the decision that led here.
    """

    rows: list[dict[str, Any]]
    total: int
    decided: int
    left: int
    hidden: int
    counts: dict[str, int]
    done: Decision | None


async def show(request: web.Request) -> web.Response:
    """GET /."""
    require_name(request)
    queue, at = queue_of(request.query, desk_of(request).config.registry), number(request.query, "page") or 1
    first = max(at - 1, 0) * PAGE_SIZE
    queue_page = await desk_of(request).ledger.read(_queue_page, queue, first, number(request.query, "done"))
    return page(
        request,
        "queue.html.j2",
        queue_page=queue_page,
        queue=queue,
        first=first,
        at=at,
        last=max(-(-queue_page.total // PAGE_SIZE), 1),
        languages=desk_of(request).config.registry,
        kinds=kinds(),
        statuses=STATUSES,
        views=VIEWS,
        least_similarities=LEAST_SIMILARITIES,
    )


def _queue_page(db: sqlite3.Connection, queue: Queue, first: int, done: int | None) -> QueuePage:
    led_here = None if done is None else decision(db, done)
    if queue.view is View.STORIES:
        stories = [dict(row) for row in similarities.selected(db, queue.selection, limit=PAGE_SIZE, offset=first)]
        counts = {str(name): n for name, n in similarities.tally(db, queue.only(languages=()).selection).items()}
        total = sum(counts.get(name, 0) for name in queue.selection.languages or counts)
        return QueuePage(stories, total, 0, total, 0, counts, led_here)
    by_similarity = queue.view is View.SIMILARITY
    found = flags.select(db, queue.selection, limit=PAGE_SIZE, offset=first, by_similarity=by_similarity)
    same_author = queue.selection.same_author
    either, neither = (queue.only(same_author=shown).selection for shown in (True, False))
    hidden = flags.count(db, either) - flags.count(db, neither)
    return QueuePage(
        _described(db, [dict(row) for row in found]),
        flags.count(db, queue.selection),
        flags.count(db, queue.only(statuses=DECIDED).selection),
        flags.count(db, queue.only(statuses=OPEN).selection),
        hidden,
        {name: sum(of_kinds.values()) for name, of_kinds in flags.counts(db, same_author=same_author).items()},
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


async def search(request: web.Request) -> web.StreamResponse:
    """GET /search?q=: leads to the queue of a story or an author; asks which one if the id is both."""
    require_name(request)
    text = request.query.get("q", "").strip()
    found = await desk_of(request).ledger.read(_search, text) if text else []
    if len(found) == 1:
        raise web.HTTPSeeOther(f"/{query_of(found[0][1])}")
    return page(request, "search.html.j2", 200 if found else 404, text=text, found=found)


def _search(db: sqlite3.Connection, text: str) -> list[tuple[str, Queue, int]]:
    candidates = [("author", Selection(statuses=EVERY, author=text))]
    with suppress(ValueError):
        candidates.insert(0, ("story", Selection(statuses=EVERY, story=id_of(text))))
    counted = [(name, Queue(selection), flags.count(db, selection)) for name, selection in candidates]
    return [result for result in counted if result[2]]
