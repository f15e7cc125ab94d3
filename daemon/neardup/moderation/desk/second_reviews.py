"""Blind second reviews: the next case of the chosen share, without what was decided, and the form for a verdict on it.

The page shows the pairs of the case and leads to their evidence, none of it with a verdict, a note, or the record of an
author.  That keeps the second judgement apart; a moderator who opens the case itself is shown everything.
"""

import sqlite3
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import case_queue, cases, flags, names, second_reviews, verdicts
from neardup.moderation.desk.addresses import in_address, story_of
from neardup.moderation.desk.deciding import NewVerdict
from neardup.moderation.desk.moderators import Moderator, Right
from neardup.moderation.desk.pages import page, require_moderator
from neardup.moderation.desk.pair import as_undecided
from neardup.moderation.desk.parts import announce_verdict, desk_of
from neardup.moderation.desk.verdict_forms import conflict_page, given_in
from neardup.moderation.interface import translate_later
from neardup.records import DECIDING, Verdict

SHOWN_PAIRS = 50


@dataclass(frozen=True, slots=True)
class BlindCase:
    """A case (a row of `case_queue.read_case`) with its first pairs, as if nothing were decided.

    `seen` identifies the state of its flags, for detecting conflicts.
    """

    row: sqlite3.Row
    action: str
    pairs: list[dict[str, Any]]
    seen: str


async def show_next(request: web.Request) -> web.Response:
    """GET /second: the next case that waits for a second review by the moderator."""
    moderator, desk = require_moderator(request), desk_of(request)
    await desk.ledger.refresh_cases()
    waiting, case = await desk.ledger.read(_next_case, desk.config.review.second_reviews, moderator)
    return page(request, "second.html.j2", case=case, waiting=waiting, offered=DECIDING)


async def review(request: web.Request) -> web.StreamResponse:
    """POST /second/ID/verdict: fields `verdict`, `note` and `seen`; leads to the next case."""
    desk, case_id, given = desk_of(request), story_of(request), given_in(request)
    if isinstance(given, web.Response):
        return given
    if given.verdict not in DECIDING:
        raise web.HTTPBadRequest(reason=translate_later("Unknown verdict"))
    await desk.ledger.refresh_cases()
    try:
        done = await desk.ledger.write(_record, case_id, given, desk.config.review.second_reviews)
    except Conflict as error:
        return conflict_page(request, error, "/second")
    if done is not None:
        announce_verdict(desk, done, Verdict.REOPENED)
    raise web.HTTPSeeOther("/second")


def _next_case(db: sqlite3.Connection, share: float, moderator: Moderator) -> tuple[int, BlindCase | None]:
    """How many cases wait for the moderator, and the first of them."""
    if Right.DECIDE not in moderator.rights:
        return 0, None
    waiting = second_reviews.list_waiting(db, share, moderator.name, moderator.languages)
    row = case_queue.read_case(db, waiting[0]) if waiting else None
    if row is None:
        return 0, None
    flag_ids = cases.flags_of(db, waiting[0])
    [shown] = names.shown_ids(db, waiting[:1]).values()
    pairs = [as_undecided(flag) for flag in flags.list_pairs(db, flag_ids[:SHOWN_PAIRS])]
    return len(waiting), BlindCase(row, f"/second/{in_address(shown)}/verdict", pairs, verdicts.state(db, flag_ids))


def _record(db: sqlite3.Connection, case_id: int, given: NewVerdict, share: float) -> int | None:
    moderator = given.moderator
    moderator.require(flags.read_languages(db, cases.flags_of(db, case_id)))
    if case_id not in second_reviews.list_waiting(db, share, moderator.name, moderator.languages):
        raise Conflict("this case does not wait for a second review any more")
    return second_reviews.record(db, case_id, given.verdict, given.note, moderator.name, given.seen)
