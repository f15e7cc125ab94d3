"""The forms of cases: one verdict on a case or on several, and reopening; they lead on through the queue."""

import re
import sqlite3
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import cases, verdicts
from neardup.ledger.case_queue import OPEN
from neardup.moderation.desk import deciding
from neardup.moderation.desk.announcements import announce
from neardup.moderation.desk.case_query import CaseQueue, case_query_of, case_queue_of
from neardup.moderation.desk.connections import Connections
from neardup.moderation.desk.desk import FORM, desk_of
from neardup.moderation.desk.forms import EXCEPTED, conflict_page, given_in, query_in
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.pages import send_again_page
from neardup.moderation.desk.position import QueuePosition, case_position_of
from neardup.moderation.desk.query import number
from neardup.moderation.desk.story import story_of
from neardup.records import Verdict
from neardup.telemetry.log import log

CHOSEN = "case-"  # the fields of chosen cases begin so


async def decide(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/verdict: fields `verdict`, `note`, `seen`, `query`, and except-FLAG for what stays open."""
    ledger, form, case_id = desk_of(request).ledger, request[FORM], story_of(request)
    given = given_in(request)
    if isinstance(given, web.Response):
        return given
    queue, at = _queue(request, given.moderator)
    excepted = _numbers_after(EXCEPTED, form)
    await ledger.refresh_cases()
    position = None if at is None else await ledger.read(case_position_of, queue, case_id, at)
    try:
        done = await ledger.write(deciding.decide_case, case_id, excepted, given)
    except Conflict as error:
        state = await ledger.read(_state, case_id)
        back = f"/case/{case_id}{case_query_of(queue, at=at)}"
        return conflict_page(request, error, back, form | {"verdict": given.verdict, "note": given.note} | state)
    announce(desk_of(request), done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(given.verdict))
    await ledger.refresh_cases()
    following = None if position is None else await _claim_next(ledger, queue, position, given.moderator.name)
    if position is None or following is None:
        raise web.HTTPSeeOther(f"/{case_query_of(queue, done=done)}")
    after = await ledger.read(case_position_of, queue, following, position.at)
    raise web.HTTPSeeOther(f"/case/{following}{case_query_of(queue, at=after.at, done=done)}")


async def reopen(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/reopen: fields `note`, the reason, and `query`; takes back the verdicts on a case."""
    ledger, case_id = desk_of(request).ledger, story_of(request)
    given = given_in(request, Verdict.REOPENED)
    if isinstance(given, web.Response):
        return given
    if not given.note:
        return send_again_page(request, 400, "A reason is needed", "Say why the case is opened again.")
    queue, at = _queue(request, given.moderator)
    try:
        done = await ledger.write(deciding.reopen_case, case_id, given)
    except Conflict as error:
        return conflict_page(request, error, f"/case/{case_id}{case_query_of(queue, at=at)}")
    announce(desk_of(request), done, "verdict")
    log.info("a case was reopened", decision=done)
    raise web.HTTPSeeOther(f"/case/{case_id}{case_query_of(queue, at=at, done=done)}")


async def decide_chosen(request: web.Request) -> web.StreamResponse:
    """POST /cases/verdict: fields `verdict`, `note`, `query`, and case-ID with the mark of the case."""
    ledger, form = desk_of(request).ledger, request[FORM]
    given = given_in(request)
    if isinstance(given, web.Response):
        return given
    queue, _ = _queue(request, given.moderator)
    marks = {case_id: form[f"{CHOSEN}{case_id}"] for case_id in _numbers_after(CHOSEN, form)}
    if not marks:
        return send_again_page(request, 400, "No case was chosen", "Mark the cases that the verdict is for.")
    await ledger.refresh_cases()
    try:
        done = await ledger.write(deciding.decide_cases, marks, given)
    except Conflict as error:
        return conflict_page(request, error, f"/{case_query_of(queue)}")
    announce(desk_of(request), done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(given.verdict), cases=len(marks))
    raise web.HTTPSeeOther(f"/{case_query_of(queue, done=done)}")


def _numbers_after(prefix: str, form: Mapping[str, str]) -> list[int]:
    """The ids in the names of the fields that begin with a prefix."""
    names = [name.removeprefix(prefix) for name in form if name.startswith(prefix)]
    return [int(name) for name in names if re.fullmatch(r"0|[1-9][0-9]{0,17}", name)]


def _queue(request: web.Request, moderator: Moderator) -> tuple[CaseQueue, int | None]:
    """The queue in the form's field `query`, and the position in it."""
    query = query_in(request)
    return case_queue_of(query, desk_of(request).config, moderator), number(query, "at")


async def _claim_next(ledger: Connections, queue: CaseQueue, position: QueuePosition, moderator: str) -> int | None:
    """Lease the case that follows, so that two who decide at the same time go on to different ones."""
    after = position.after
    while after is not None and queue.selection.status == OPEN:
        lease = await ledger.write(cases.take_lease, after, moderator)
        if lease.moderator == moderator:
            break
        after = (await ledger.read(case_position_of, queue, after, position.at)).after
    return after


def _state(db: sqlite3.Connection, case_id: int) -> dict[str, Any]:
    is_open = deciding.open_flags(db, case_id)
    return {"seen": verdicts.state(db, is_open), "history": verdicts.of_case(db, case_id), "flagged": len(is_open)}
