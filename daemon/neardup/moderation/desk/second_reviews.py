"""Blind second reviews: the next case of the chosen share, without what was decided, and the form for a verdict on it.

The page shows the pairs of the case and leads to their evidence, none of it with a verdict, a note, or the record of an
author.  That keeps the second judgement apart; a moderator who opens the case itself is shown everything.
"""

import sqlite3
from typing import Any

from aiohttp import web
from msgspec import Struct

from neardup.errors import Conflict
from neardup.ledger import Row, case_queue, cases, flags, names, second_reviews, verdicts
from neardup.moderation.desk.addresses import quote_shown_id, read_story_id
from neardup.moderation.desk.deciding import NewVerdict
from neardup.moderation.desk.moderators import Moderator, Right
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.pair import hide_decision
from neardup.moderation.desk.parts import announce_verdict, get_desk
from neardup.moderation.desk.verdict_forms import read_verdict, render_conflict
from neardup.moderation.interface import translate_later
from neardup.records import DECIDING, ShownId, Verdict

SHOWN_PAIRS = 50


class BlindCase(Struct, frozen=True):
    """A case (a row of `case_queue.read_case`) with its first pairs, as if nothing were decided.

    `shown_id` is the id of the case, `seen` identifies the state of its flags, for detecting conflicts.
    """

    row: Row
    shown_id: ShownId
    pairs: list[dict[str, Any]]
    seen: str


async def show_next(request: web.Request) -> web.Response:
    """GET /second: the next case that waits for a second review by the moderator."""
    moderator, desk = require_moderator(request), get_desk(request)
    await desk.ledger.refresh_cases()
    waiting, found = await desk.ledger.read(list_blind_cases, desk.config.review.second_reviews, moderator, 0, 1)
    case = found[0] if found else None
    action = case and f"/second/{quote_shown_id(case.shown_id)}/verdict"
    return render_page(request, "second.html.j2", case=case, waiting=waiting, action=action, offered=DECIDING)


async def review(request: web.Request) -> web.StreamResponse:
    """POST /second/ID/verdict: fields `verdict`, `note` and `seen`; leads to the next case."""
    desk, case_id, given = get_desk(request), read_story_id(request), read_verdict(request)
    if given.verdict not in DECIDING:
        raise web.HTTPBadRequest(reason=translate_later("Unknown verdict"))
    await desk.ledger.refresh_cases()
    try:
        decision = await desk.ledger.write(record, case_id, given, desk.config.review.second_reviews)
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
    waiting = second_reviews.list_waiting(db, share, moderator.name, moderator.languages)
    chosen = waiting[first : first + limit]
    shown = names.read_shown_ids(db, chosen)
    found = []
    for case_id in chosen:
        if (row := case_queue.read_case(db, case_id)) is not None:
            flag_ids = cases.list_flags(db, case_id)
            pairs = [hide_decision(flag) for flag in flags.list_pairs(db, flag_ids[:SHOWN_PAIRS])]
            found.append(BlindCase(row, shown[case_id], pairs, verdicts.identify_state(db, flag_ids)))
    return len(waiting), found


def record(db: sqlite3.Connection, case_id: int, given: NewVerdict, share: float) -> int | None:
    """Record a second review; returns the number of the decision by which the case is open again, None if both agree.

    Raises Conflict where the case does not wait for one by this moderator, and NotPermitted.
    """
    moderator = given.moderator
    moderator.require(flags.read_languages(db, cases.list_flags(db, case_id)))
    if case_id not in second_reviews.list_waiting(db, share, moderator.name, moderator.languages):
        raise Conflict("this case does not wait for a second review any more")
    return second_reviews.record(db, case_id, given.verdict, given.note, moderator.name, given.seen)
