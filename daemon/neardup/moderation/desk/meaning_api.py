"""Translated and retold pairs in the JSON API of the desk: at addresses of their own, as they are no flags.

GET  /api/meaning               the queue; the query is that of the page /meaning, with first= and limit=
GET  /api/meaning/A/B           a pair
POST /api/meaning/A/B/verdict   give a verdict on it
POST /api/meaning/A/B/undo      undo the latest verdict
"""

import json
import sqlite3
from typing import Annotated

from aiohttp import web
from pydantic import AfterValidator

from neardup.ledger import meaning_flags
from neardup.moderation.desk import meaning
from neardup.moderation.desk.announcements import announce
from neardup.moderation.desk.api import LARGEST_PAGE, PAGE_SIZE, Body, Note, authorize, body_of, offered
from neardup.moderation.desk.api_answers import Json
from neardup.moderation.desk.api_problems import NO_PAIR, Refused
from neardup.moderation.desk.deciding import Given
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.pair import pair_of
from neardup.moderation.desk.position import Pair
from neardup.moderation.desk.query import Queue, number, queue_of
from neardup.moderation.export.meaning import meaning_row
from neardup.records import Verdict
from neardup.telemetry.log import log


class VerdictBody(Body):
    """A verdict on a pair, whose `seen` is that of the pair as it was read."""

    verdict: Annotated[Verdict, AfterValidator(offered)]
    note: Note = ""


async def list_pairs(request: web.Request) -> web.Response:
    """GET /api/meaning."""
    authorize(request)
    desk, queue = desk_of(request), queue_of(request.query, desk_of(request).config)
    first, limit = number(request.query, "first") or 0, number(request.query, "limit") or PAGE_SIZE
    return web.json_response(await desk.ledger.read(_queue_object, queue, first, min(limit, LARGEST_PAGE)))


async def show(request: web.Request) -> web.Response:
    """GET /api/meaning/A/B."""
    authorize(request)
    return await _answered(request, pair_of(request))


async def decide(request: web.Request) -> web.Response:
    """POST /api/meaning/A/B/verdict."""
    moderator, pair, body = authorize(request), pair_of(request), await body_of(request, VerdictBody)
    given = Given(body.verdict, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(meaning.decide_pair, pair, given)
    announce(desk_of(request), done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(body.verdict))
    return await _answered(request, pair)


async def undo(request: web.Request) -> web.Response:
    """POST /api/meaning/A/B/undo."""
    moderator, pair, body = authorize(request), pair_of(request), await body_of(request, Body)
    given = Given(Verdict.REOPENED, "", moderator, body.seen)
    undone = await desk_of(request).ledger.write(meaning.undo_latest, pair, given)
    announce(desk_of(request), undone, "undo")
    log.info("a verdict was undone", decision=undone)
    return await _answered(request, pair)


async def _answered(request: web.Request, pair: Pair) -> web.Response:
    found = await desk_of(request).ledger.read(_pair_object, pair)
    if found is None:
        raise Refused(NO_PAIR, NO_PAIR.title)
    return web.json_response(found)


def _queue_object(db: sqlite3.Connection, queue: Queue, first: int, limit: int) -> Json:
    rows = list(meaning_flags.select(db, queue.selection, limit=limit, offset=first))
    return {"total": meaning_flags.count(db, queue.selection), "pairs": [_object(db, row) for row in rows]}


def _pair_object(db: sqlite3.Connection, pair: Pair) -> Json | None:
    row = meaning_flags.of_pair(db, *pair)
    return None if row is None else _object(db, row)


def _object(db: sqlite3.Connection, row: sqlite3.Row) -> Json:
    """The columns of the export, and `seen`, which a verdict asks for."""
    chunks = [dict(zip(("a", "b", "cosine"), one, strict=True)) for one in json.loads(row["chunks"])]
    return {**meaning_row(row), "chunks": chunks, "seen": str(meaning_flags.state(db, row["a"], row["b"]))}


ROUTES = (
    web.get("/api/meaning", list_pairs),
    web.get("/api/meaning/{a}/{b}", show),
    web.post("/api/meaning/{a}/{b}/verdict", decide),
    web.post("/api/meaning/{a}/{b}/undo", undo),
)
