"""Verdicts: forms in, and on to the next pair of the queue; who was slower than another moderator is told so."""

import sqlite3
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger import flags, verdicts
from neardup.moderation.desk.cluster import story_of
from neardup.moderation.desk.decided import Decision, decision
from neardup.moderation.desk.desk import FORM, desk_of
from neardup.moderation.desk.pages import page, send_again
from neardup.moderation.desk.pair import Pair, pair_of
from neardup.moderation.desk.query import number, query_of, selection_of
from neardup.moderation.desk.queue import place
from neardup.moderation.desk.typed import MOST_IN_NOTE, moderator, note_of
from neardup.records import Verdict

log = structlog.get_logger()
Said = tuple[Verdict, str, str, str]  # a verdict, its note, the moderator, and the state that was seen


async def judge_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: `verdict`, `note`, `seen`, and `query`, the queue's; on to its next pair."""
    ledger, form, pair = desk_of(request).ledger, request[FORM], pair_of(request)
    verdict, note = _verdict(form), note_of(form.get("note", ""))
    if refused := _refused(request, note):
        return refused
    query = _query(form)
    selection = selection_of(query, desk_of(request).config.registry)
    stood = await ledger.read(place, selection, pair, number(query, "at") or 0)
    try:
        said = verdict, note, moderator(request), form.get("seen", "")
        done = await ledger.write(_judge_pair, pair, said)
    except Conflict as error:
        now = await ledger.read(_pair_now, pair)
        back = "/pair/{}/{}".format(*pair)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": back} | now)
    log.info("judged", decision=done, verdict=str(verdict))
    if stood.after is None:
        raise web.HTTPSeeOther(f"/{query_of(selection, done=done)}")
    at = stood.at + (verdict in selection.statuses)
    raise web.HTTPSeeOther("/pair/{}/{}{}".format(*stood.after, query_of(selection, at=at, done=done)))


async def judge_cluster(request: web.Request) -> web.StreamResponse:
    """POST /cluster/ID/verdict: the same for all its pairs; back to the queue."""
    ledger, form, story = desk_of(request).ledger, request[FORM], story_of(request)
    verdict, note = _verdict(form), note_of(form.get("note", ""))
    if refused := _refused(request, note):
        return refused
    try:
        said = verdict, note, moderator(request), form.get("seen", "")
        done = await ledger.write(_judge_cluster, story, said)
    except Conflict as error:
        now = await ledger.read(_cluster_now, story)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": f"/cluster/{story}"} | now)
    log.info("judged", decision=done, verdict=str(verdict))
    selection = selection_of(_query(form), desk_of(request).config.registry)
    raise web.HTTPSeeOther(f"/{query_of(selection, done=done)}")


async def undo(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: `seen` and `query`; back to what was judged."""
    ledger, form, done = desk_of(request).ledger, request[FORM], number(request.match_info, "decision") or 0
    if refused := _refused(request, ""):
        return refused
    taken_back = await ledger.read(decision, done)
    if taken_back is None:
        raise web.HTTPNotFound
    try:
        await ledger.write(verdicts.undo, done, moderator(request), form.get("seen", ""))
    except Conflict as error:
        return page(request, "conflict.html.j2", 409, said=str(error), form=None, back=_where(taken_back))
    log.info("undone", decision=done)
    query = _query(form)
    selection = selection_of(query, desk_of(request).config.registry)
    raise web.HTTPSeeOther(f"{_where(taken_back)}{query_of(selection, at=number(query, 'at'))}")


def _where(decided: Decision) -> str:
    a, b = decided.pairs[0]
    return f"/pair/{a}/{b}" if len(decided.pairs) == 1 else f"/cluster/{a}"


def _conflict(request: web.Request, error: Conflict, form: dict[str, Any]) -> web.Response:
    """What was typed is kept; the form that is given back is of what the others have decided."""
    kept = {"query": "", "action": request.path} | form
    return page(request, "conflict.html.j2", 409, said=str(error), form=kept)


def _verdict(form: dict[str, str]) -> Verdict:
    try:
        return Verdict(form.get("verdict", ""))
    except ValueError:
        raise web.HTTPBadRequest(reason="That is no verdict") from None


def _query(form: dict[str, str]) -> dict[str, str]:
    return dict(parse_qsl(form.get("query", "").removeprefix("?"), max_num_fields=32))


def _refused(request: web.Request, note: str) -> web.Response | None:
    if len(note) > MOST_IN_NOTE:
        return send_again(request, 400, "The note is too long", f"It may have {MOST_IN_NOTE:,} characters.")
    if not moderator(request):
        said = "Your name is not known here any more. Give it at /name, in another tab, then send this again."
        return send_again(request, 403, "Who are you?", said)
    return None


def _judge_pair(db: sqlite3.Connection, pair: Pair, said: Said) -> int:
    row = flags.of_pair(db, *pair)
    return verdicts.decide(db, [row["flag_id"]] if row else [], *said)


def _judge_cluster(db: sqlite3.Connection, story: int, said: Said) -> int:
    return verdicts.decide(db, [row["flag_id"] for row in flags.of_cluster(db, story)], *said)


def _pair_now(db: sqlite3.Connection, pair: Pair) -> dict[str, Any]:
    row = flags.of_pair(db, *pair)
    return {
        "seen": verdicts.state(db, [row["flag_id"]] if row else []),
        "history": verdicts.of_pair(db, *pair),
        "flagged": int(row is not None),
    }


def _cluster_now(db: sqlite3.Connection, story: int) -> dict[str, Any]:
    ids = [row["flag_id"] for row in flags.of_cluster(db, story)]
    return {"seen": verdicts.state(db, ids), "history": [], "flagged": len(ids)}
