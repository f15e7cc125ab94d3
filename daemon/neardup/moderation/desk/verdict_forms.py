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
from neardup.moderation.desk.pair import pair_of
from neardup.moderation.desk.position import Pair, position_of, story_position_of
from neardup.moderation.desk.query import Queue, View, number, query_of, queue_of
from neardup.moderation.desk.user_input import MAX_NOTE_LENGTH, clean_note, moderator_name
from neardup.records import Verdict

log = structlog.get_logger()
VerdictInput = tuple[Verdict, str, str, str]  # the verdict, its note, the moderator, and the state that was seen


async def decide_pair(request: web.Request) -> web.StreamResponse:
    """POST /pair/A/B/verdict: fields `verdict`, `note`, `seen` and the queue's `query`.

    It leads to the queue's next pair; in a queue of stories, back to the story.
    """
    ledger, form, pair = desk_of(request).ledger, request[FORM], pair_of(request)
    verdict, note = _verdict(form), clean_note(form.get("note", ""))
    if rejection := _rejection(request, note):
        return rejection
    queue, at = _queue(request)
    position = await ledger.read(position_of, queue, pair, at or 0)
    try:
        given = verdict, note, moderator_name(request), form.get("seen", "")
        done = await ledger.write(_decide_pair, pair, given)
    except Conflict as error:
        state = await ledger.read(_pair_state, pair)
        back = "/pair/{}/{}".format(*pair)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": back} | state)
    log.info("a verdict was stored", decision=done, verdict=str(verdict))
    if queue.view is View.STORIES:
        story = await ledger.read(_later_story, pair)
        raise web.HTTPSeeOther(f"/story/{story}{query_of(queue, at=at, done=done)}")
    if position.after is None:
        raise web.HTTPSeeOther(f"/{query_of(queue, done=done)}")
    at = position.at + (verdict in queue.selection.statuses)
    raise web.HTTPSeeOther("/pair/{}/{}{}".format(*position.after, query_of(queue, at=at, done=done)))


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
    raise web.HTTPSeeOther(f"/{query_of(_queue(request)[0], done=done)}")


async def decide_story(request: web.Request) -> web.StreamResponse:
    """POST /story/ID/verdict: the same fields, for the story's open pairs with its sources; leads to the next story."""
    ledger, form, story = desk_of(request).ledger, request[FORM], story_of(request)
    verdict, note = _verdict(form), clean_note(form.get("note", ""))
    if rejection := _rejection(request, note):
        return rejection
    queue, at = _queue(request)
    position = None if at is None else await ledger.read(story_position_of, queue, story, at)
    try:
        given = verdict, note, moderator_name(request), form.get("seen", "")
        done = await ledger.write(verdicts.decide_story, story, *given)
    except Conflict as error:
        state = await ledger.read(_story_state, story)
        return _conflict(request, error, form | {"verdict": verdict, "note": note, "back": f"/story/{story}"} | state)
    log.info("a verdict was stored", decision=done, verdict=str(verdict))
    if position is None or position.after is None:
        raise web.HTTPSeeOther(f"/{query_of(queue, done=done)}")
    after = await ledger.read(story_position_of, queue, position.after, position.at)
    raise web.HTTPSeeOther(f"/story/{position.after}{query_of(queue, at=after.at, done=done)}")


async def undo(request: web.Request) -> web.StreamResponse:
    """POST /undo/DECISION: fields `seen` and `query`; leads back to the pair, the cluster or the story."""
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
    queue, at = _queue(request)
    raise web.HTTPSeeOther(f"{_path_of(undone)}{query_of(queue, at=at)}")


def _path_of(decision: Decision) -> str:
    if decision.story is not None:
        return f"/story/{decision.story}"
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


def _queue(request: web.Request) -> tuple[Queue, int | None]:
    """The queue in the form's field `query`, and the position in it."""
    query = dict(parse_qsl(request[FORM].get("query", "").removeprefix("?"), max_num_fields=32))
    return queue_of(query, desk_of(request).config.registry), number(query, "at")


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


def _later_story(db: sqlite3.Connection, pair: Pair) -> int:
    """The story of a pair whose page shows the pair as one with a source."""
    row = flags.of_pair(db, *pair)
    return pair[1] if row is None else int(row["story_id"])


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


def _story_state(db: sqlite3.Connection, story: int) -> dict[str, Any]:
    ids = verdicts.open_flags_of_story(db, story)
    return {"seen": verdicts.state(db, ids), "history": [], "flagged": len(ids)}
