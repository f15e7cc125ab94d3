"""The page of a case: the report of its lead, its pairs as evidence, its cluster, and the form for one verdict."""

import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from neardup.ledger import case_queue, cases, clusters, flags, stories, verdicts
from neardup.ledger.cases import Lease
from neardup.moderation.desk import deciding
from neardup.moderation.desk.access import require_moderator
from neardup.moderation.desk.case_query import CaseQueue, case_query_of, case_queue_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.position import QueuePosition, case_position_of
from neardup.moderation.desk.query import at_word, number
from neardup.moderation.desk.story import StoryDetails, report_values, story_details, story_of
from neardup.moderation.evidence.graph import Graph, drawn_stories, graph
from neardup.moderation.interface import marked
from neardup.moderation.publication_wording import cluster_order
from neardup.moderation.wording import case_headline

SHOWN_PAIRS = 50
SHOWN_STORIES = 100
DRAWN_FROM = 3  # stories: a cluster of two is not drawn


@dataclass(frozen=True, slots=True)
class ClusterDetails:
    """The cluster of a case: `size` stories in an `order` that is said in words, of which the first are `shown`."""

    size: int
    order: str
    shown: list[dict[str, Any]]
    graph: Graph


@dataclass(frozen=True, slots=True)
class CaseDetails:
    """A case (a row of `case_queue.read_case`), its lead, and its position in the queue of `total` cases it came from.

    `seen` and `decided_seen` identify the state of its open and its decided flags, for detecting conflicts; `pairs` are
    SHOWN_PAIRS of its flags, the open ones first, from the one at `first_pair` on.
    """

    row: sqlite3.Row
    lead: StoryDetails
    lease: Lease | None
    pairs: list[dict[str, Any]]
    first_pair: int
    seen: str
    decided_seen: str
    decisions: list[sqlite3.Row]
    cluster: ClusterDetails | None
    position: QueuePosition | None
    total: int
    done: Decision | None


async def show(request: web.Request) -> web.Response:
    """GET /case/ID: the case of a story, with the query of its queue, at=, page= of its pairs; leases an open one."""
    moderator, desk = require_moderator(request), desk_of(request)
    queue, at = case_queue_of(request.query, desk.config, moderator), number(request.query, "at")
    done, pairs_page = number(request.query, "done"), max(number(request.query, "page") or 1, 1)
    first_pair = (pairs_page - 1) * SHOWN_PAIRS
    await desk.ledger.refresh_cases()
    case_id = await desk.ledger.read(cases.of_story, story_of(request))
    if case_id is None:
        raise web.HTTPNotFound(reason=marked("This story is in no case"))
    details = await desk.ledger.read(_details, case_id, queue, at, done, first_pair=first_pair)
    if details is None:
        raise web.HTTPNotFound(reason=marked("This story is in no case"))
    may_decide = moderator.may_decide(details.row["language"])
    lease = details.lease
    if details.row["open_flags"] and may_decide:
        lease = await desk.ledger.write(cases.take_lease, case_id, moderator.name)
    query = case_query_of(queue, at=at)
    return page(
        request,
        "case.html.j2",
        **await report_values(desk, details.lead, partial(at_word, query))
        | {"headline": case_headline(dict(details.row))},
        case=details,
        may_decide=may_decide,
        holder=None if lease is None or lease.moderator == moderator.name else lease,
        queue=queue,
        query=query,
        pairs_page=pairs_page,
        last_pairs_page=max(-(-details.row["flags"] // SHOWN_PAIRS), 1),
        at=at,
        case_query_of=case_query_of,
        story_url="/story/{}".format,
    )


def _details(
    db: sqlite3.Connection, case_id: int, queue: CaseQueue, at: int | None, done: int | None, *, first_pair: int
) -> CaseDetails | None:
    row = case_queue.read_case(db, case_id)
    if row is None or (lead := story_details(db, row["lead"])) is None:
        return None
    is_open, decided = deciding.open_and_decided(db, case_id)
    return CaseDetails(
        row,
        lead,
        cases.leases_held(db, [case_id]).get(case_id),
        flags.list_pairs(db, [*is_open, *decided][first_pair : first_pair + SHOWN_PAIRS]),
        first_pair,
        verdicts.state(db, is_open),
        verdicts.state(db, decided),
        verdicts.of_case(db, case_id),
        _cluster(db, case_id),
        None if at is None else case_position_of(db, queue, case_id, at),
        0 if at is None else case_queue.count(db, queue.selection),
        None if done is None else decision(db, done),
    )


def _cluster(db: sqlite3.Connection, case_id: int) -> ClusterDetails | None:
    found = clusters.of_case(db, case_id)
    if found is None or len(found[0].stories) < DRAWN_FROM:
        return None
    cluster, edges = found
    shown = cluster.stories[:SHOWN_STORIES]
    known = stories.describe(db, {*shown, *drawn_stories(cluster, ())})
    return ClusterDetails(
        len(cluster.stories),
        cluster_order(cluster),
        [dict(known[story]) for story in shown],
        graph(cluster, edges, (), known),
    )
