"""The verdict form of a pair, which leads to the next pair, and the form that undoes a decision."""

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
from neardup.moderation.desk.position import Pair, position_of
from neardup.moderation.desk.query import number, query_of, queue_of
from neardup.records import Verdict
from neardup.telemetry.log import log


async def decide_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and the queue's `query`.

    It leads to the queue's next pair; after the last pair of a case, back to the case.
    """
    desk, form, pair = desk_of(request), request[FORM], pair_of(request)
    ledger = desk.ledger
    given = given_in(request)
    if isinstance(given, web.Response):
        return given
    query = query_in(request)
    queue, at = queue_of(query, desk.config), number(query, "at")
    await ledger.refresh_cases()
    position = await ledger.read(position_of, queue, pair, at or 0)
    try:
        done = await ledger.write(deciding.decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_pair_state, pair)
        kept = form | {"verdict": given.verdict, "note": given.note}
        return conflict_page(request, error, "/pair/{}/{}".format(*pair), kept | state)
    announce(desk, done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(given.verdict))
    if position.after is not None:
        at = position.at + (given.verdict in queue.selection.statuses)
        raise web.HTTPSeeOther("/pair/{}/{}{}".format(*position.after, query_of(queue, at=at, done=done)))
    if queue.selection.case is not None:
        raise web.HTTPSeeOther(f"/case/{queue.selection.case}?done={done}")
    raise web.HTTPSeeOther(f"/pairs{query_of(queue, done=done)}")


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
    if len(undone.pairs) == 1:
        back = query_of(queue_of(query, desk.config), at=number(query, "at"))
    else:
        back = case_query_of(case_queue_of(query, desk.config, given.moderator), at=number(query, "at"))
    raise web.HTTPSeeOther(f"{_path_of(undone)}{back}")


def _path_of(decision: Decision) -> str:
    if len(decision.pairs) == 1:
        return "/pair/{}/{}".format(*decision.pairs[0])
    return f"/case/{next(iter(decision.cases))}" if len(decision.cases) == 1 else "/"


def _pair_state(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.of_pair(db, *pair)
    return {
        "seen": verdicts.state(db, [row["flag_id"]] if row else []),
        "history": verdicts.of_pair(db, *pair),
        "flagged": int(row is not None),
    }
