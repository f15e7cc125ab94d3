"""The page of a cluster: its stories, its flags, and the form for one verdict on all its pairs."""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.ledger import clusters, flags, stories, verdicts
from neardup.ledger.selection import Selection
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.login import require_name
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import EVERY, Queue, number, queue_of
from neardup.moderation.evidence.graph import Graph, graph
from neardup.moderation.wording import cluster_order
from neardup.source.parse import id_of

SHOWN_STORIES = 100
SHOWN_PAIRS = 50
DRAWN_FROM = 3  # stories: a cluster of two is not drawn


@dataclass(frozen=True, slots=True)
class ClusterDetails:
    """A cluster of `size` stories: the shown stories, in an `order` that is said in words, and the shown flags.

    `statuses` counts the flags by status; `seen` identifies their state, for detecting conflicts.
    """

    stories: list[dict[str, Any]]
    size: int
    order: str
    rows: list[dict[str, Any]]
    statuses: Counter[str]
    seen: str
    graph: Graph | None
    done: Decision | None


def story_of(request: web.Request) -> int:
    """The story id in the path.  Raises HTTPNotFound."""
    try:
        return id_of(request.match_info["story"])
    except ValueError:
        raise web.HTTPNotFound from None


async def show(request: web.Request) -> web.Response:
    """GET /cluster/ID."""
    require_name(request)
    story = story_of(request)
    details = await desk_of(request).ledger.read(_details, story, number(request.query, "done"))
    if details is None:
        raise web.HTTPNotFound(reason="This story is in no cluster")
    return page(
        request,
        "cluster_page.html.j2",
        details=details,
        story=story,
        queue=queue_of(request.query, desk_of(request).config.registry),
        cluster_queue=Queue(Selection(statuses=EVERY, cluster=story)),
        story_url="/cluster/{}".format,
    )


def _details(db: sqlite3.Connection, story: int, done: int | None) -> ClusterDetails | None:
    cluster = clusters.around(db, story)
    if cluster is None:
        return None
    rows = [dict(row) for row in flags.of_cluster(db, story)]
    shown = cluster.stories[:SHOWN_STORIES]
    known = stories.describe(db, cluster.stories)
    return ClusterDetails(
        [dict(known[story_id]) for story_id in shown],
        len(cluster.stories),
        cluster_order(cluster),
        rows[:SHOWN_PAIRS],
        Counter(row["status"] for row in rows),
        verdicts.state(db, [row["flag_id"] for row in rows]),
        graph(cluster, flags.edges_around(db, story), (), known) if len(cluster.stories) >= DRAWN_FROM else None,
        None if done is None else decision(db, done),
    )
