"""The page of a pair: its evidence, its verdicts so far, and the verdict form."""

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.errors import NeardupError
from neardup.ledger import flags, verdicts
from neardup.ledger.selection import Selection
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import Desk, desk_of
from neardup.moderation.desk.login import require_name
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import number, selection_of
from neardup.moderation.desk.queue import QueuePosition, position_of
from neardup.moderation.evidence.graph import Graph
from neardup.moderation.evidence.page import cluster_graph, template_values
from neardup.query.compare import describe_stories, load_story
from neardup.query.evidence import LoadedStory, UnreadableStory, evidence, evidence_from_ledger, thresholds_of
from neardup.source.parse import id_of

READ_SECONDS = 10.0

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PairDetails:
    """A pair in the ledger: its flag (a row of the view `pairs`), both stories by id, and its position in the queue.

    `seen` identifies the state of the flag, for detecting conflicts.
    """

    flag: dict[str, Any]
    stories: Mapping[int, dict[str, Any]]
    seen: str
    history: list[sqlite3.Row]
    position: QueuePosition
    graph: Graph | None
    done: Decision | None


def pair_of(request: web.Request) -> Pair:
    """The pair in the path, the lower id first.  Raises HTTPNotFound."""
    try:
        a, b = sorted(id_of(request.match_info[name]) for name in "ab")
    except ValueError:
        raise web.HTTPNotFound from None
    return a, b


async def show(request: web.Request) -> web.Response:
    """GET /pair/A/B: the story published earlier is shown as A, if that is known."""
    require_name(request)
    desk, pair = desk_of(request), pair_of(request)
    selection, at = selection_of(request.query, desk.config.registry), number(request.query, "at") or 0
    details = await desk.ledger.read(_details, pair, selection, at, number(request.query, "done"))
    if details is None:
        raise web.HTTPNotFound(reason="These two stories are not flagged as a pair")
    sides = details.flag["matched_id"], details.flag["story_id"]
    a, b = await asyncio.gather(*(_load_text(desk, details.stories[story]) for story in sides))
    return page(
        request,
        "pair.html.j2",
        **await asyncio.to_thread(_template_values, desk, a, b, details),
        details=details,
        action="/pair/{}/{}/verdict".format(*pair),
        layout="desk.html.j2",
        selection=selection,
        story_url="/cluster/{}".format,
    )


def _details(db: sqlite3.Connection, pair: Pair, selection: Selection, at: int, done: int | None) -> PairDetails | None:
    row = flags.of_pair(db, *pair)
    if row is None:
        return None
    return PairDetails(
        dict(row),
        describe_stories(db, list(pair)),
        verdicts.state(db, [row["flag_id"]]),
        verdicts.of_pair(db, *pair),
        position_of(db, selection, pair, at),
        cluster_graph(db, (row["matched_id"], row["story_id"])),
        None if done is None else decision(db, done),
    )


async def _load_text(desk: Desk, known: dict[str, Any]) -> LoadedStory | UnreadableStory:
    """A story with its text, or without it if the store fails or does not answer in time."""
    try:
        async with desk.reads, asyncio.timeout(READ_SECONDS):
            return await load_story(desk.pool, known)
    except TimeoutError:
        return UnreadableStory(known, "the store takes too long to answer")
    except NeardupError as error:
        return UnreadableStory(known, str(error))


def _template_values(
    desk: Desk, a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, details: PairDetails
) -> dict[str, Any]:
    if isinstance(a, LoadedStory) and isinstance(b, LoadedStory):
        facts = evidence(a, b, thresholds_of(desk.config.detection, a, b))
    else:
        facts = evidence_from_ledger(a, b, details.flag)
    return template_values(facts, a, b, details.graph)
