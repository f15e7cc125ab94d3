"""The verdict forms: they store or undo a verdict, then lead to the next pair, or report a conflict."""

import sqlite3
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import flags, verdicts
from neardup.moderation.desk.cluster import story_of
from neardup.moderation.desk.decision import Decision, decision
from neardup.moderation.desk.desk import FORM, desk_of
from neardup.moderation.desk.pages import page, send_again_page
from neardup.moderation.desk.pair import Pair, pair_of
from neardup.moderation.desk.query import number, query_of, selection_of
from neardup.moderation.desk.queue import position_of
from neardup.moderation.desk.user_input import MAX_NOTE_LENGTH, clean_note, moderator_name
from neardup.records import Verdict

log = structlog.get_logger()
VerdictInput = tuple[Verdict, str, str, str]  # the verdict, its note, the moderator, and the state that was seen


async def decide_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and the queue's `query`; leads to its next pair."""
    ledger, form, pair = desk_of(request).ledger, request[FORM], pair_of(request)
    verdict, note = _verdict(form), clean_note(form.get("note", ""))
    if rejection := _rejection(request, note):
        return rejection
    query = _query(form)
    selection = selection_of(query, desk_of(request).config.registry)
    position = await ledger.read(position_of, selection, pair, number(query, "at") or 0)
    try:
        given = verdict, note, moderator_name(request), form.get("seen", "")
        done = await ledger.write(_decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_pair_state, pair)
        back = "/pair/{}/{}".format(*pair)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": back} | state)
    log.info("a verdict was stored", decision=done, verdict=str(verdict))
    if position.after is None:
        raise web.HTTPSeeOther(f"/{query_of(selection, done=done)}")
    at = position.at + (verdict in selection.statuses)
    raise web.HTTPSeeOther("/pair/{}/{}{}".format(*position.after, query_of(selection, at=at, done=done)))


async def decide_cluster(request: web.Request) -> web.StreamResponse:
    """POST /cluster/ID/verdict: the same fields, for all pairs of the cluster; leads back to the queue."""
    ledger, form, story = desk_of(request).ledger, request[FORM], story_of(request)
    verdict, note = _verdict(form), clean_note(form.get("note", ""))
    if rejection := _rejection(request, note):
        return rejection
    try:
        given = verdict, note, moderator_name(request), form.get("seen", "")
        done = await ledger.write(_decide_cluster, story, given)
    except Conflict as error:
        state = await ledger.read(_cluster_state, story)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": f"/cluster/{story}"} | state)
    log.info("a verdict was stored", decision=done, verdict=str(verdict))
    selection = selection_of(_query(form), desk_of(request).config.registry)
    raise web.HTTPSeeOther(f"/{query_of(selection, done=done)}")


async def undo(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: fields `seen` and `query`; leads back to the pair or the cluster."""
    ledger, form, done = desk_of(request).ledger, request[FORM], number(request.match_info, "decision") or 0
    if rejection := _rejection(request, ""):
        return rejection
    undone = await ledger.read(decision, done)
    if undone is None:
        raise web.HTTPNotFound
    try:
        await ledger.write(verdicts.undo, done, moderator_name(request), form.get("seen", ""))
    except Conflict as error:
        return page(request, "conflict.html.j2", 409, message=str(error), form=None, back=_path_of(undone))
    log.info("a verdict was undone", decision=done)
    query = _query(form)
    selection = selection_of(query, desk_of(request).config.registry)
    raise web.HTTPSeeOther(f"{_path_of(undone)}{query_of(selection, at=number(query, 'at'))}")


def _path_of(decision: Decision) -> str:
    a, b = decision.pairs[0]
    return f"/pair/{a}/{b}" if len(decision.pairs) == 1 else f"/cluster/{a}"


def _conflict(request: web.Request, error: Conflict, form: dict[str, Any]) -> web.Response:
    """The page of a conflict: it keeps the input, in a form for the state after the other moderator's verdict."""
    fields = {"query": "", "action": request.path} | form
    return page(request, "conflict.html.j2", 409, message=str(error), form=fields)


def _verdict(form: dict[str, str]) -> Verdict:
    try:
        return Verdict(form.get("verdict", ""))
    except ValueError:
        raise web.HTTPBadRequest(reason="Unknown verdict") from None


def _query(form: dict[str, str]) -> dict[str, str]:
    return dict(parse_qsl(form.get("query", "").removeprefix("?"), max_num_fields=32))


def _rejection(request: web.Request, note: str) -> web.Response | None:
    if len(note) > MAX_NOTE_LENGTH:
        return send_again_page(request, 400, "The note is too long", f"The limit is {MAX_NOTE_LENGTH:,} characters.")
    if not moderator_name(request):
        message = "The desk no longer knows your name. Enter it at /name in another tab, then send this again."
        return send_again_page(request, 403, "Who are you?", message)
    return None


def _decide_pair(db: sqlite3.Connection, pair: Pair, given: VerdictInput) -> int:
    row = flags.of_pair(db, *pair)
    return verdicts.decide(db, [row["flag_id"]] if row else [], *given)


def _decide_cluster(db: sqlite3.Connection, story: int, given: VerdictInput) -> int:
    return verdicts.decide(db, [row["flag_id"] for row in flags.of_cluster(db, story)], *given)


def _pair_state(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.of_pair(db, *pair)
    return {
        "seen": verdicts.state(db, [row["flag_id"]] if row else []),
        "history": verdicts.of_pair(db, *pair),
        "flagged": int(row is not None),
    }


def _cluster_state(db: sqlite3.Connection, story: int) -> dict[str, Any]:
    ids = [row["flag_id"] for row in flags.of_cluster(db, story)]
    return {"seen": verdicts.state(db, ids), "history": [], "flagged": len(ids)}
