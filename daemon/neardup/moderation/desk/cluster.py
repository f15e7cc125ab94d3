"""The page of a cluster: its stories, what joins them, and the form to judge all its pairs alike."""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.ledger import clusters, flags, stories, verdicts
from neardup.ledger.selection import Selection
from neardup.moderation.desk.decided import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.people import named
from neardup.moderation.desk.query import STATUSES, number, selection_of
from neardup.moderation.evidence.graph import Graph, graph
from neardup.source.parse import id_of

SHOWN_STORIES = 100
SHOWN_PAIRS = 50
PAIR = 2  # stories: nothing to draw


@dataclass(frozen=True, slots=True)
class About:
    """A cluster: its stories in the order of publication, its flags worst first, as many of either as are shown."""

    stories: list[dict[str, Any]]
    size: int
    rows: list[dict[str, Any]]
    statuses: Counter[str]
    seen: str
    graph: Graph | None
    done: Decision | None


def story_of(request: web.Request) -> int:
    """The story of an address.  Raises HTTPNotFound."""
    try:
        return id_of(request.match_info["story"])
    except ValueError:
        raise web.HTTPNotFound from None


async def show(request: web.Request) -> web.Response:
    """GET /cluster/ID."""
    named(request)
    story = story_of(request)
    about = await desk_of(request).ledger.read(_about, story, number(request.query, "done"))
    if about is None:
        raise web.HTTPNotFound(reason="This story stands in no cluster")
    return page(
        request,
        "cluster_of.html.j2",
        about=about,
        story=story,
        selection=selection_of(request.query, desk_of(request).config.registry),
        cluster_selection=Selection(statuses=STATUSES["every"], cluster=story),
        story_url="/cluster/{}".format,
    )


def _about(db: sqlite3.Connection, story: int, done: int | None) -> About | None:
    cluster = clusters.around(db, story)
    if cluster is None:
        return None
    rows = [dict(row) for row in flags.of_cluster(db, story)]
    shown = cluster.stories[:SHOWN_STORIES]
    known = stories.describe(db, shown)
    titles = {one: row["title"] for one, row in known.items()}
    return About(
        [dict(known[one]) for one in shown],
        len(cluster.stories),
        rows[:SHOWN_PAIRS],
        Counter(row["status"] for row in rows),
        verdicts.state(db, [row["flag_id"] for row in rows]),
        graph(cluster, flags.edges_around(db, story), (), titles) if len(cluster.stories) > PAIR else None,
        None if done is None else decision(db, done),
    )
