"""The forms of verdicts: on a case, on several, on a pair; reopening a case, and undoing a decision or the last ones.

A form has the state that its moderator saw, and the query of the queue of cases.  It leads on through the queue: from a
case to the next one that no other moderator holds, from a pair to the next one of its case, and from the last pair to
the case.  A form that is refused comes back with its input.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import cases, flags, names, verdicts
from neardup.ledger.case_queue import OPEN
from neardup.ledger.cases import CaseHeld
from neardup.moderation.desk import deciding
from neardup.moderation.desk.addresses import (
    Pair,
    find_page_of_form,
    make_case_url,
    make_pair_url,
    read_pair,
    read_story_id,
)
from neardup.moderation.desk.deciding import OFFERED, Decision, NewVerdict, read_decision
from neardup.moderation.desk.moderators import Moderator, choose_local_path
from neardup.moderation.desk.pages import (
    SendAgain,
    read_note,
    render_page,
    require_moderator,
    require_sender,
)
from neardup.moderation.desk.parts import FORM, Connections, announce_undo, announce_verdict, get_desk
from neardup.moderation.desk.queues import (
    CaseQueue,
    QueuePosition,
    find_case_position,
    format_case_query,
    parse_case_queue,
    place_in_case,
    read_number,
)
from neardup.moderation.interface import translate_later
from neardup.records import Verdict
from neardup.source.parse import parse_id

EXCEPTED = "except-"  # the fields of pairs that are left out of a verdict begin so
CHOSEN = "case-"  # the fields of chosen cases begin so
SHOWN_DECISIONS = 20


def _parse_verdict(form: dict[str, str]) -> Verdict:
    for verdict in OFFERED:
        if verdict == form.get("verdict"):
            return verdict
    raise web.HTTPBadRequest(reason=translate_later("Unknown verdict"))


def read_query(request: web.Request) -> dict[str, str]:
    """The query string of the queue, which the form has in its field `query`."""
    return dict(parse_qsl(request[FORM].get("query", "").removeprefix("?"), max_num_fields=32))


def read_verdict(request: web.Request, verdict: Verdict | None = None) -> NewVerdict:
    """The verdict in a form with the fields `verdict`, `note` and `seen`.

    A note begins with that of the field `saved`, if one was chosen.  Raises SendAgain for a note that is too long and
    for a moderator who is not known, and HTTPBadRequest for an unknown verdict.
    """
    form = request[FORM]
    given_verdict = verdict or _parse_verdict(form)
    note = read_note(f"{form.get('saved', '')}\n{form.get('note', '')}")
    return NewVerdict(given_verdict, note, require_sender(request), form.get("seen", ""))


def render_conflict(
    request: web.Request, error: Conflict, back: str, form: dict[str, Any] | None = None
) -> web.Response:
    """The page of a conflict, with a way back; it keeps the input, in a form for the state that is current now."""
    fields = form and {"query": "", "action": request.path} | form
    kept = {name: value for name, value in (form or {}).items() if name.startswith(EXCEPTED)}
    return render_page(
        request,
        "conflict.html.j2",
        409,
        is_held=isinstance(error, CaseHeld),
        message=str(error),
        form=fields,
        back=back,
        kept=kept,
    )


async def decide_case(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/verdict: fields `verdict`, `note`, `seen`, `query`, and except-FLAG for what stays open."""
    ledger, form, case_id = get_desk(request).ledger, request[FORM], read_story_id(request)
    given = read_verdict(request)
    queue, at = _read_queue(request, given.moderator)
    excepted = _read_excepted_flags(form)
    await ledger.refresh_cases()
    position = None if at is None else await ledger.read(find_case_position, queue, case_id, at)
    try:
        done = await ledger.write(deciding.decide_case, case_id, excepted, given)
    except Conflict as error:
        state = await ledger.read(_read_case_state, case_id)
        back = f"{find_page_of_form(request)}{format_case_query(queue, at=at)}"
        return render_conflict(request, error, back, form | {"verdict": given.verdict, "note": given.note} | state)
    announce_verdict(get_desk(request), done, given.verdict)
    await ledger.refresh_cases()
    following = None if position is None else await _claim_next(ledger, queue, position, given.moderator.name)
    if position is None or following is None:
        raise web.HTTPSeeOther(f"/{format_case_query(queue, done=done)}")
    after = await ledger.read(find_case_position, queue, following, position.at)
    [shown] = (await ledger.read(names.read_shown_ids, [following])).values()
    raise web.HTTPSeeOther(f"{make_case_url(shown)}{format_case_query(queue, at=after.at, done=done)}")


async def reopen_case(request: web.Request) -> web.StreamResponse:
    """POST /case/ID/reopen: fields `note`, the reason, and `query`; takes back the verdicts on a case."""
    ledger, case_id = get_desk(request).ledger, read_story_id(request)
    given = read_verdict(request, Verdict.REOPENED)
    if not given.note:
        raise SendAgain(400, "A reason is needed", "Say why the case is opened again.")
    queue, at = _read_queue(request, given.moderator)
    try:
        done = await ledger.write(deciding.reopen_case, case_id, given)
    except Conflict as error:
        return render_conflict(request, error, f"{find_page_of_form(request)}{format_case_query(queue, at=at)}")
    announce_verdict(get_desk(request), done, given.verdict)
    raise web.HTTPSeeOther(f"{find_page_of_form(request)}{format_case_query(queue, at=at, done=done)}")


async def decide_chosen_cases(request: web.Request) -> web.StreamResponse:
    """POST /cases/verdict: fields `verdict`, `note`, `query`, and case-ID with the state of the case."""
    ledger, form = get_desk(request).ledger, request[FORM]
    given = read_verdict(request)
    queue, _ = _read_queue(request, given.moderator)
    states = _read_chosen_cases(form)
    if not states:
        raise SendAgain(400, "No case was chosen", "Mark the cases that the verdict is for.")
    await ledger.refresh_cases()
    try:
        done = await ledger.write(deciding.decide_cases, states, given)
    except Conflict as error:
        return render_conflict(request, error, f"/{format_case_query(queue)}")
    announce_verdict(get_desk(request), done, given.verdict)
    raise web.HTTPSeeOther(f"/{format_case_query(queue, done=done)}")


def _read_chosen_cases(form: Mapping[str, str]) -> dict[int, str]:
    """The ids of the chosen cases, each with the state in its field."""
    chosen = {}
    for name in form:
        if name.startswith(CHOSEN):
            with suppress(ValueError):
                chosen[parse_id(name.removeprefix(CHOSEN))] = form[name]
    return chosen


def _read_excepted_flags(form: Mapping[str, str]) -> set[int]:
    """The ids of the flags of pairs that are left out."""
    listed = [name.removeprefix(EXCEPTED) for name in form if name.startswith(EXCEPTED)]
    return {int(flag_id) for flag_id in listed if re.fullmatch(r"[0-9]{1,18}", flag_id)}


def _read_queue(request: web.Request, moderator: Moderator) -> tuple[CaseQueue, int | None]:
    """The queue in the form's field `query`, and the position in it."""
    query = read_query(request)
    return parse_case_queue(query, get_desk(request).config, moderator), read_number(query, "at")


async def _claim_next(ledger: Connections, queue: CaseQueue, position: QueuePosition, moderator: str) -> int | None:
    """Lease the case that follows, so that two who decide at the same time go on to different ones."""
    after = position.after
    while after is not None and queue.selection.status == OPEN:
        lease = await ledger.write(cases.take_lease, after, moderator)
        if lease.moderator == moderator:
            break
        after = (await ledger.read(find_case_position, queue, after, position.at)).after
    return after


def _read_case_state(db: sqlite3.Connection, case_id: int) -> dict[str, Any]:
    is_open = deciding.list_open_flags(db, case_id)
    return {
        "seen": verdicts.identify_state(db, is_open),
        "history": verdicts.list_of_case(db, case_id),
        "flagged": len(is_open),
    }


async def decide_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and `query`.

    It leads to the next pair of the case without a verdict; after the last one, back to the case.
    """
    desk, form, pair = get_desk(request), request[FORM], read_pair(request)
    ledger = desk.ledger
    given = read_verdict(request)
    query = read_query(request)
    queue, at = parse_case_queue(query, desk.config, given.moderator), read_number(query, "at")
    try:
        done = await ledger.write(deciding.decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_read_pair_state, pair)
        kept = form | {"verdict": given.verdict, "note": given.note}
        return render_conflict(request, error, find_page_of_form(request), kept | state)
    announce_verdict(desk, done, given.verdict)
    await ledger.refresh_cases()
    place = await ledger.read(place_in_case, pair)
    if place.next_open is not None:
        following = make_pair_url(*place.next_open)
    else:
        following = find_page_of_form(request) if place.case_id is None else make_case_url(place.case_id)
    raise web.HTTPSeeOther(f"{following}{format_case_query(queue, at=at, done=done)}")


async def undo_decision(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: fields `seen` and `query`; leads `back`, or to the pair, the case, or the queue of cases."""
    desk, done = get_desk(request), read_number(request.match_info, "decision") or 0
    given = read_verdict(request, Verdict.REOPENED)
    undone = await desk.ledger.read(read_decision, done)
    if undone is None:
        raise web.HTTPNotFound
    back = request[FORM].get("back")
    try:
        await desk.ledger.write(deciding.undo, done, given.moderator, given.seen)
    except Conflict as error:
        return render_conflict(request, error, choose_local_path(back or _find_path(undone)))
    announce_undo(desk, done)
    if back:
        raise web.HTTPSeeOther(choose_local_path(back))
    query = read_query(request)
    queue, at = parse_case_queue(query, desk.config, given.moderator), read_number(query, "at")
    raise web.HTTPSeeOther(f"{_find_path(undone)}{format_case_query(queue, at=at)}")


async def show_decisions(request: web.Request) -> web.Response:
    """GET /decisions: the moderator's last decisions, each with its undo."""
    moderator = require_moderator(request)
    return render_page(
        request, "decisions.html.j2", decisions=await get_desk(request).ledger.read(_list_decisions, moderator.name)
    )


def _list_decisions(db: sqlite3.Connection, moderator: str) -> list[dict[str, Any]]:
    """The moderator's last decisions, the latest first, each with its first pair, a row of `pairs`, and its address."""
    listed = []
    for done in verdicts.list_decisions(db, moderator, SHOWN_DECISIONS):
        decision = read_decision(db, done)
        if decision is not None:
            row = flags.read_pair(db, *(parse_id(str(shown)) for shown in decision.pairs[0]))
            address = _find_path(decision) if row else make_pair_url(*decision.pairs[0], "meaning")
            listed.append({"decision": decision, "first": row, "address": address})
    return listed


def _find_path(decision: Decision) -> str:
    if len(decision.pairs) == 1:
        return make_pair_url(*decision.pairs[0])
    return make_case_url(decision.cases[0]) if len(decision.cases) == 1 else "/"


def _read_pair_state(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.read_pair(db, *pair)
    return {
        "seen": verdicts.identify_state(db, [row["flag_id"]] if row else []),
        "history": verdicts.list_of_pair(db, *pair),
        "flagged": int(row is not None),
    }
