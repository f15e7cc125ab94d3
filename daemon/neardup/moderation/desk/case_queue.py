"""The first page of the desk: the cases of a selection, fifty a page, and the form for one verdict on chosen ones."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import case_queue, cases
from neardup.ledger.case_queue import EVERY, JUDGED, OPEN, Authors, Counts, Inbox, Order
from neardup.ledger.marks import of_stories
from neardup.moderation.desk.access import require_moderator
from neardup.moderation.desk.case_query import CaseQueue, case_query_of, case_queue_of, day
from neardup.moderation.desk.deciding import mark_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.query import number
from neardup.moderation.interface import marked
from neardup.moderation.wording import VERDICT_NAMES, case_headline
from neardup.records import DECIDING

PAGE_SIZE = 50
LEAST_SIMILARITIES = (0.25, 0.5, 0.75)  # offered as filters
ORDERS = {
    Order.SIMILARITY: marked("Most similar"),
    Order.DATE: marked("Latest"),
    Order.HISTORY: marked("Author’s history"),
    Order.STORIES: marked("Most stories"),
}
INBOXES: dict[Inbox | None, str] = {
    None: marked("All cases"),
    Inbox.MINE: marked("Mine"),
    Inbox.FREE: marked("Free"),
    Inbox.SECOND: marked("Second opinion asked"),
}
AUTHORS: dict[Authors | None, str] = {
    None: marked("Any authors"),
    Authors.OTHER: marked("Other authors"),
    Authors.SAME: marked("Same author"),
}
STATUSES: dict[str, str] = {
    OPEN: marked("Open"),
    JUDGED: marked("Decided"),
    EVERY: marked("All"),
    **{verdict: VERDICT_NAMES[verdict] for verdict in DECIDING},
}


@dataclass(frozen=True, slots=True)
class CasesPage:
    """One page of a queue of cases; `inboxes` counts the cases of each inbox, `done` is the decision that led here."""

    rows: list[dict[str, Any]]
    counts: Counts
    inboxes: dict[Inbox | None, int]
    done: Decision | None


async def show(request: web.Request) -> web.Response:
    """GET /: the query is that of a queue of cases, with page= and done=."""
    moderator, desk = require_moderator(request), desk_of(request)
    queue = case_queue_of(request.query, desk.config, moderator)
    at = max(number(request.query, "page") or 1, 1)
    first = (at - 1) * PAGE_SIZE
    await desk.ledger.refresh_cases()
    cases_page = await desk.ledger.read(_page, queue, moderator, first, number(request.query, "done"))
    return page(
        request,
        "cases.html.j2",
        cases_page=cases_page,
        queue=queue,
        first=first,
        own_languages=moderator.languages,
        at=at,
        last=max(-(-cases_page.counts.total // PAGE_SIZE), 1),
        languages=desk.config.registry,
        kinds=kinds(),
        statuses=STATUSES,
        orders=ORDERS,
        inboxes=INBOXES,
        authors=AUTHORS,
        least_similarities=LEAST_SIMILARITIES,
        case_query_of=case_query_of,
        day=day,
    )


def _page(db: sqlite3.Connection, queue: CaseQueue, moderator: Moderator, first: int, done: int | None) -> CasesPage:
    rows = [dict(row) for row in case_queue.select(db, queue.selection, queue.order, limit=PAGE_SIZE, offset=first)]
    held = cases.leases_held(db, [row["case_id"] for row in rows])
    marks = of_stories(db, [row["lead"] for row in rows])
    for row in rows:
        row["marks"] = marks.get(row["lead"], ())
        row["lease"] = held.get(row["case_id"])
        row["is_held"] = row["lease"] is not None and row["lease"].moderator != moderator.name
        row["is_offered"] = row["open_flags"] and not row["is_held"] and moderator.may_decide(row["language"])
        row["mark"] = mark_of(row)
        row["headline"] = case_headline(row)
        row["asking"] = json.loads(row["unsure"])
        for name in ("kinds", "statuses", "catalogues"):
            row[name] = [one for one in row[name].split(",") if one]
    return CasesPage(
        rows,
        case_queue.counts(db, queue.selection),
        {inbox: case_queue.count(db, queue.only(inbox=inbox).selection) for inbox in INBOXES},
        None if done is None else decision(db, done),
    )
