"""The verdict form of a pair, which leads to the next pair of its case, and the form that undoes a decision."""

import sqlite3
from typing import Any

from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import flags, verdicts
from neardup.moderation.desk import deciding
from neardup.moderation.desk.announcements import announce
from neardup.moderation.desk.case_query import case_query_of, case_queue_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import FORM, desk_of
from neardup.moderation.desk.forms import conflict_page, given_in, query_in
from neardup.moderation.desk.pair import pair_of
from neardup.moderation.desk.position import Pair, place_in_case
from neardup.moderation.desk.query import number
from neardup.records import Verdict
from neardup.telemetry.log import log


async def decide_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and `query`.

    It leads to the next pair of the case without a verdict; after the last one, back to the case.
    """
    desk, form, pair = desk_of(request), request[FORM], pair_of(request)
    ledger = desk.ledger
    given = given_in(request)
    if isinstance(given, web.Response):
        return given
    query = query_in(request)
    queue, at = case_queue_of(query, desk.config, given.moderator), number(query, "at")
    try:
        done = await ledger.write(deciding.decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_pair_state, pair)
        kept = form | {"verdict": given.verdict, "note": given.note}
        return conflict_page(request, error, _path_of_pair(pair), kept | state)
    announce(desk, done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(given.verdict))
    await ledger.refresh_cases()
    place = await ledger.read(place_in_case, pair)
    if place.next_open is not None:
        following = _path_of_pair(place.next_open)
    else:
        following = _path_of_pair(pair) if place.case_id is None else f"/case/{place.case_id}"
    raise web.HTTPSeeOther(f"{following}{case_query_of(queue, at=at, done=done)}")


async def undo(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: fields `seen` and `query`; leads back to the pair, the case, or the queue of cases."""
    desk, done = desk_of(request), number(request.match_info, "decision") or 0
    given = given_in(request, Verdict.REOPENED)
    if isinstance(given, web.Response):
        return given
    undone = await desk.ledger.read(decision, done)
    if undone is None:
        raise web.HTTPNotFound
    try:
        await desk.ledger.write(deciding.undo, done, given.moderator, given.seen)
    except Conflict as error:
        return conflict_page(request, error, _path_of(undone))
    log.info("a verdict was undone", decision=done)
    announce(desk, done, "undo")
    query = query_in(request)
    queue, at = case_queue_of(query, desk.config, given.moderator), number(query, "at")
    raise web.HTTPSeeOther(f"{_path_of(undone)}{case_query_of(queue, at=at)}")


def _path_of_pair(pair: Pair) -> str:
    return "/pair/{}/{}".format(*pair)


def _path_of(decision: Decision) -> str:
    if len(decision.pairs) == 1:
        return _path_of_pair(decision.pairs[0])
    return f"/case/{next(iter(decision.cases))}" if len(decision.cases) == 1 else "/"


def _pair_state(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.of_pair(db, *pair)
    return {
        "seen": verdicts.state(db, [row["flag_id"]] if row else []),
        "history": verdicts.of_pair(db, *pair),
        "flagged": int(row is not None),
    }
