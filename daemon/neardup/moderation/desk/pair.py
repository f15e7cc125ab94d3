"""The page of a pair: its evidence, what was said of it, and the form to judge it by."""

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.errors import NeardupError
from neardup.ledger import flags, verdicts
from neardup.ledger.selection import Selection
from neardup.moderation.desk.decided import Decision, decision
from neardup.moderation.desk.desk import Desk, desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.people import named
from neardup.moderation.desk.query import number, selection_of
from neardup.moderation.desk.queue import Place, place
from neardup.moderation.evidence.graph import Graph
from neardup.moderation.evidence.page import cluster_graph, parts
from neardup.query.compare import describe_stories, load_story
from neardup.query.evidence import LoadedStory, UnreadableStory, evidence, evidence_from_ledger, thresholds_of
from neardup.source.parse import id_of

READ_SECONDS = 10.0

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class About:
    """What the ledger holds of a pair: its flag as a row of `pairs`, both stories by id, and its place in a queue."""

    flag: dict[str, Any]
    known: Mapping[int, dict[str, Any]]
    seen: str
    history: list[sqlite3.Row]
    place: Place
    graph: Graph | None
    done: Decision | None


def pair_of(request: web.Request) -> Pair:
    """The pair of an address, the lower id first.  Raises HTTPNotFound."""
    try:
        a, b = sorted(id_of(request.match_info[name]) for name in "ab")
    except ValueError:
        raise web.HTTPNotFound from None
    return a, b


async def show(request: web.Request) -> web.Response:
    """GET /pair/A/B: the story published earlier is shown as A."""
    named(request)
    desk, pair = desk_of(request), pair_of(request)
    selection, at = selection_of(request.query, desk.config.registry), number(request.query, "at") or 0
    about = await desk.ledger.read(_about, pair, selection, at, number(request.query, "done"))
    if about is None:
        raise web.HTTPNotFound(reason="These two stories are not flagged as a pair")
    sides = about.flag["matched_id"], about.flag["story_id"]
    a, b = await asyncio.gather(*(_with_text(desk, about.known[story]) for story in sides))
    return page(
        request,
        "pair.html.j2",
        **await asyncio.to_thread(_found, desk, a, b, about),
        about=about,
        action="/pair/{}/{}/verdict".format(*pair),
        layout="desk.html.j2",
        selection=selection,
        story_url="/cluster/{}".format,
    )


def _about(db: sqlite3.Connection, pair: Pair, selection: Selection, at: int, done: int | None) -> About | None:
    row = flags.of_pair(db, *pair)
    if row is None:
        return None
    return About(
        dict(row),
        describe_stories(db, list(pair)),
        verdicts.state(db, [row["flag_id"]]),
        verdicts.of_pair(db, *pair),
        place(db, selection, pair, at),
        cluster_graph(db, (row["matched_id"], row["story_id"])),
        None if done is None else decision(db, done),
    )


async def _with_text(desk: Desk, known: dict[str, Any]) -> LoadedStory | UnreadableStory:
    """A story with its text; without it where the store does not answer in time."""
    try:
        async with desk.reads, asyncio.timeout(READ_SECONDS):
            return await load_story(desk.pool, known)
    except TimeoutError:
        return UnreadableStory(known, "the store takes too long to answer")
    except NeardupError as error:
        return UnreadableStory(known, str(error))


def _found(
    desk: Desk, a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, about: About
) -> dict[str, Any]:
    if isinstance(a, LoadedStory) and isinstance(b, LoadedStory):
        facts = evidence(a, b, thresholds_of(desk.config.detection, a, b))
    else:
        facts = evidence_from_ledger(a, b, about.flag)
    return parts(facts, a, b, about.graph)
