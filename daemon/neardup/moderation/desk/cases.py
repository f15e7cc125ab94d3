"""The first page of the desk, the cases of a selection; the page of a case; and blind second reviews of cases.

The list has ten cases a page, each with the pair that shows it best, and a form for one verdict on chosen ones.  The
page of a case has the report of its lead, its pairs as evidence, its cluster, and the form for one verdict.

The page of a second review shows the pairs of the next case of the chosen share and leads to their evidence, none of it
with a verdict, a note, or the record of an author.  That keeps the second judgement apart; a moderator who opens the
case itself is shown everything.
"""

import json
import sqlite3
from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.verify.tiers import list_kinds
from neardup.errors import Conflict
from neardup.ledger import (
    Row,
    case_queue,
    cases,
    complaints,
    flags,
    removed_texts,
    serials,
    story_rows,
    verdicts,
)
from neardup.ledger.case_queue import EVERY, JUDGED, OPEN, Authors, Complained, Counts, Inbox, Order
from neardup.ledger.cases import Lease
from neardup.ledger.flags import Selection
from neardup.ledger.marks import read_marks
from neardup.ledger.serials import SerialMatch
from neardup.moderation.desk import deciding
from neardup.moderation.desk.addresses import (
    CaseQueue,
    QueuePosition,
    add_word,
    find_case_position,
    format_case_query,
    format_day,
    parse_case_queue,
    quote_shown_id,
    read_number,
    read_page_number,
    read_story_id,
)
from neardup.moderation.desk.deciding import (
    Decision,
    NewVerdict,
    describe_state,
    read_decision,
    read_verdict,
    render_conflict,
)
from neardup.moderation.desk.moderators import Moderator, Right
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.pair import hide_decision
from neardup.moderation.desk.parts import announce_verdict, get_desk
from neardup.moderation.desk.story import StoryDetails, make_report_values, read_story_details
from neardup.moderation.evidence.page import Graph, choose_drawn, lay_out
from neardup.moderation.interface import translate_later
from neardup.moderation.wording import STATUS_NAMES, describe_case
from neardup.records import DECIDING, PERMITTED, STATUSES, ShownId, Verdict

PAGE_SIZE = 10
LEAST_SIMILARITIES = (0.25, 0.5, 0.75)  # offered as filters
ORDERS = {
    Order.SIMILARITY: translate_later("Most similar"),
    Order.DATE: translate_later("Latest"),
    Order.HISTORY: translate_later("Author’s history"),
    Order.STORIES: translate_later("Most stories"),
}
INBOXES: dict[Inbox | None, str] = {
    None: translate_later("All cases"),
    Inbox.MINE: translate_later("Mine"),
    Inbox.FREE: translate_later("Free"),
    Inbox.SECOND: translate_later("Second opinion asked"),
    Inbox.THIRD: translate_later("Two disagreed"),
}
AUTHORS: dict[Authors | None, str] = {
    None: translate_later("Any authors"),
    Authors.OTHER: translate_later("Other authors"),
    Authors.SAME: translate_later("Same author"),
}
COMPLAINED: dict[Complained | None, str] = {
    None: translate_later("With complaints or without"),
    Complained.OPEN: translate_later("With an open complaint"),
    Complained.OVERDUE: translate_later("With an overdue complaint"),
}
STATUS_FILTERS: dict[str, str] = {
    OPEN: translate_later("Open"),
    JUDGED: translate_later("Decided"),
    EVERY: translate_later("All"),
    **{status: STATUS_NAMES[status] for status in (PERMITTED, *DECIDING)},
}
SHOWN_PAIRS = 50
SHOWN_STORIES = 100
ANY = Selection(statuses=STATUSES, same_author=True)
DRAWN_FROM = 3  # stories: a cluster of two is not drawn


class CasesPage(Struct, frozen=True):
    """One page of a queue of cases; `inboxes` counts the cases of each inbox, `done` is the decision that led here."""

    rows: list[dict[str, Any]]
    counts: Counts
    inboxes: dict[Inbox | None, int]
    done: Decision | None


async def show_cases(request: web.Request) -> web.Response:
    """GET /: the query is that of a queue of cases, with page= and done=."""
    moderator, desk = require_moderator(request), get_desk(request)
    queue = parse_case_queue(request.query, desk.config, moderator)
    page_number = read_page_number(request.query)
    first = (page_number - 1) * PAGE_SIZE
    await desk.ledger.refresh_cases()
    cases_page = await desk.ledger.read(_read_cases_page, queue, moderator, first, read_number(request.query, "done"))
    return render_page(
        request,
        "cases.html.j2",
        cases_page=cases_page,
        queue=queue,
        first=first,
        is_filtered=queue.only(inbox=None).selection != parse_case_queue({}, desk.config, moderator).selection,
        own_languages=moderator.languages,
        page_number=page_number,
        last=max(-(-cases_page.counts.total // PAGE_SIZE), 1),
        languages=desk.config.registry,
        kinds=list_kinds(),
        statuses=STATUS_FILTERS,
        orders=ORDERS,
        inboxes=INBOXES,
        authors=AUTHORS,
        complained=COMPLAINED,
        least_similarities=LEAST_SIMILARITIES,
        case_query_of=format_case_query,
        day=format_day,
    )


def _read_cases_page(
    db: sqlite3.Connection, queue: CaseQueue, moderator: Moderator, first: int, done: int | None
) -> CasesPage:
    rows = case_queue.select(db, queue.selection, queue.order, limit=PAGE_SIZE, offset=first)
    held = cases.read_held_leases(db, [row["case_id"] for row in rows])
    marks = read_marks(db, [row["lead"] for row in rows])
    returned = {match["story_id"] for match in removed_texts.read_of_stories(db, [row["lead"] for row in rows])}
    best = {row["case_id"]: case_queue.list_best_flags(db, ANY, row["case_id"], row["lead"], 1) for row in rows}
    pairs = flags.read_by_id(db, [flag_id for flag_ids in best.values() for flag_id in flag_ids])
    shown = story_rows.read_shown_ids(db, [row["case_id"] for row in rows])
    for row in rows:
        row["pair"] = next((pairs[flag_id] for flag_id in best[row["case_id"]]), None)
        row["shown_id"] = shown[row["case_id"]]
        row["marks"] = marks.get(row["lead"], ())
        row["lease"] = held.get(row["case_id"])
        row["is_held"] = row["lease"] is not None and row["lease"].moderator != moderator.name
        row["is_offered"] = row["open_flags"] and not row["is_held"] and moderator.may_decide(row["language"])
        row["state"] = describe_state(row)
        row["is_returned"] = row["lead"] in returned
        row["headline"] = describe_case(row)
        row["asking"] = json.loads(row["unsure"])
        for name in ("kinds", "statuses", "catalogues"):
            row[name] = [part for part in row[name].split(",") if part]
    return CasesPage(
        rows,
        case_queue.count_by_filter(db, queue.selection),
        {inbox: case_queue.count(db, queue.only(inbox=inbox).selection) for inbox in INBOXES},
        None if done is None else read_decision(db, done),
    )


class ClusterDetails(Struct, frozen=True):
    """The drawing of the cluster of a case, and the first of its stories."""

    graph: Graph
    shown: list[dict[str, Any]]


class CaseDetails(Struct, frozen=True):
    """A case (a row of `case_queue.read_case`), its lead, and its position in the queue of `total` cases it came from.

    `second` is its blind second review.  `seen` and `decided_seen` identify the state of its open and its decided
    flags, for detecting conflicts; `pairs` are SHOWN_PAIRS of its flags, the open ones first, from the one at
    `first_pair` on.
    `serials` are those in the case that match.  `shown` has the ids of the case, its neighbours in the queue and the
    chapters of the serials.
    """

    row: Row
    lead: StoryDetails
    lease: Lease | None
    pairs: list[dict[str, Any]]
    first_pair: int
    seen: str
    decided_seen: str
    decisions: list[Row]
    cluster: ClusterDetails | None
    position: QueuePosition | None
    total: int
    done: Decision | None
    second: Row | None
    serials: list[SerialMatch]
    shown: Mapping[int, ShownId]


async def show_case(request: web.Request) -> web.Response:
    """GET /case/ID: the case of a story; leases an open one.

    The query is that of its queue, with at=, page= of its pairs, and without= as for the page of a story.
    """
    moderator, desk = require_moderator(request), get_desk(request)
    queue, at = parse_case_queue(request.query, desk.config, moderator), read_number(request.query, "at")
    done, pairs_page = read_number(request.query, "done"), read_page_number(request.query)
    first_pair = (pairs_page - 1) * SHOWN_PAIRS
    await desk.ledger.refresh_cases()
    case_id = await desk.ledger.read(cases.find_case, read_story_id(request))
    if case_id is None:
        raise web.HTTPNotFound(reason=translate_later("This story is in no case"))
    details = await desk.ledger.read(_read_details, case_id, queue, at, done, first_pair=first_pair)
    if details is None:
        raise web.HTTPNotFound(reason=translate_later("This story is in no case"))
    may_decide = moderator.may_decide(details.row["language"])
    lease = details.lease
    if details.row["open_flags"] and may_decide:
        lease = await desk.ledger.write(cases.take_lease, case_id, moderator.name)
    query = format_case_query(queue, at=at)
    return render_page(
        request,
        "case.html.j2",
        **await make_report_values(request, details.lead, describe_case(details.row), partial(add_word, query)),
        case=details,
        may_decide=may_decide,
        holder=None if lease is None or lease.moderator == moderator.name else lease,
        queue=queue,
        query=query,
        list_query=format_case_query(queue, page=at // PAGE_SIZE + 1 if at and at >= PAGE_SIZE else None),
        pairs_page=pairs_page,
        last_pairs_page=max(-(-details.row["flags"] // SHOWN_PAIRS), 1),
        at=at,
        case_query_of=format_case_query,
    )


def _read_details(
    db: sqlite3.Connection, case_id: int, queue: CaseQueue, at: int | None, done: int | None, *, first_pair: int
) -> CaseDetails | None:
    row = case_queue.read_case(db, case_id)
    if row is None or (lead := read_story_details(db, row["lead"])) is None:
        return None
    found = deciding.list_flags_of_case(db, case_id)
    closed = [complaint for complaint in lead.complaints if not complaint.is_open]
    position = None if at is None else find_case_position(db, queue, case_id, at)
    neighbours = [n for n in (position.before, position.after) if n is not None] if position else []
    matches = serials.list_matches_of_case(db, case_id)
    chapters = {story for match in matches for story in (match.source["id"], match.copy["id"])}
    return CaseDetails(
        row,
        replace(lead, complaints=[*complaints.list_open_of_case(db, case_id), *closed]),
        cases.read_held_leases(db, [case_id]).get(case_id),
        flags.list_pairs(db, list(chain(*found))[first_pair : first_pair + SHOWN_PAIRS]),
        first_pair,
        verdicts.identify_state(db, found.open),
        verdicts.identify_state(db, found.decided),
        verdicts.list_of_case(db, case_id),
        _read_cluster(db, case_id),
        position,
        0 if at is None else case_queue.count(db, queue.selection),
        None if done is None else read_decision(db, done),
        verdicts.read_review(db, case_id),
        matches,
        story_rows.read_shown_ids(db, {case_id, *neighbours, *chapters}),
    )


def _read_cluster(db: sqlite3.Connection, case_id: int) -> ClusterDetails | None:
    found = flags.find_cluster_of_case(db, case_id)
    if found is None or len(found[0].stories) < DRAWN_FROM:
        return None
    cluster, edges = found
    shown = cluster.stories[:SHOWN_STORIES]
    known = story_rows.describe(db, {*shown, *choose_drawn(cluster, ())})
    return ClusterDetails(lay_out(cluster, edges, (), known), [known[story] for story in shown])


# Blind second reviews.


class BlindCase(Struct, frozen=True):
    """A case (a row of `case_queue.read_case`) with its first pairs, as if nothing were decided.

    `shown_id` is the id of the case, `seen` identifies the state of its flags, for detecting conflicts.
    """

    row: Row
    shown_id: ShownId
    pairs: list[dict[str, Any]]
    seen: str


async def show_second_review(request: web.Request) -> web.Response:
    """GET /second: the next case that waits for a second review by the moderator."""
    moderator, desk = require_moderator(request), get_desk(request)
    await desk.ledger.refresh_cases()
    waiting, found = await desk.ledger.read(list_blind_cases, desk.config.review.second_reviews, moderator, 0, 1)
    case = found[0] if found else None
    action = case and f"/second/{quote_shown_id(case.shown_id)}/verdict"
    return render_page(request, "second.html.j2", case=case, waiting=waiting, action=action, offered=DECIDING)


async def review_case(request: web.Request) -> web.StreamResponse:
    """POST /second/ID/verdict: fields `verdict`, `note` and `seen`; leads to the next case."""
    desk, case_id, given = get_desk(request), read_story_id(request), read_verdict(request)
    if given.verdict not in DECIDING:
        raise web.HTTPBadRequest(reason=translate_later("Unknown verdict"))
    await desk.ledger.refresh_cases()
    try:
        decision = await desk.ledger.write(record_second_review, case_id, given, desk.config.review.second_reviews)
    except Conflict as error:
        return render_conflict(request, error, "/second")
    if decision is not None:
        announce_verdict(desk, decision, Verdict.REOPENED)
    raise web.HTTPSeeOther("/second")


def list_blind_cases(
    db: sqlite3.Connection, share: float, moderator: Moderator, first: int, limit: int
) -> tuple[int, list[BlindCase]]:
    """How many cases, of this share of the decided ones, wait for the moderator, and some of them from `first` on."""
    if Right.DECIDE not in moderator.rights:
        return 0, []
    waiting = verdicts.list_cases_to_review(db, share, moderator.name, moderator.languages)
    chosen = waiting[first : first + limit]
    shown = story_rows.read_shown_ids(db, chosen)
    found = []
    for case_id in chosen:
        if (row := case_queue.read_case(db, case_id)) is not None:
            flag_ids = cases.list_flags(db, case_id)
            pairs = [hide_decision(flag) for flag in flags.list_pairs(db, flag_ids[:SHOWN_PAIRS])]
            found.append(BlindCase(row, shown[case_id], pairs, verdicts.identify_state(db, flag_ids)))
    return len(waiting), found


def record_second_review(db: sqlite3.Connection, case_id: int, given: NewVerdict, share: float) -> int | None:
    """Record a second review; returns the number of the decision by which the case is open again, None if both agree.

    Raises Conflict where the case does not wait for one by this moderator, and NotPermitted.
    """
    moderator = given.moderator
    moderator.require(flags.read_languages(db, cases.list_flags(db, case_id)))
    if case_id not in verdicts.list_cases_to_review(db, share, moderator.name, moderator.languages):
        raise Conflict("this case does not wait for a second review any more")
    return verdicts.record_review(db, case_id, given.verdict, given.note, moderator.name, given.seen)
