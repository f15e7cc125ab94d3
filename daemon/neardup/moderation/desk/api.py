"""The JSON API of the desk: the cases, leases and verdicts of its pages, for programs that bring a moderator's token.

GET  /api/cases                 a queue of cases; the query is that of the page /, with first= and limit=
GET  /api/cases/ID              the case of a story
POST /api/cases/ID/lease        hold the case, or hold it longer
POST /api/cases/ID/verdict      give one verdict on the open pairs of the case, or on all but some
POST /api/cases/ID/reopen       take back the verdicts on the case, for a reason
GET  /api/decisions/N           a decision
POST /api/decisions/N/undo      undo it
"""

import sqlite3
from collections.abc import Callable
from typing import Annotated, TypeVar

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from neardup.ledger import cases
from neardup.moderation.desk import deciding
from neardup.moderation.desk.announcements import announce
from neardup.moderation.desk.api_answers import (
    Json,
    case_object,
    decision_object,
    lease_object,
    queue_object,
)
from neardup.moderation.desk.api_problems import NO_CASE, NO_DECISION, Refused
from neardup.moderation.desk.case_query import case_queue_of
from neardup.moderation.desk.deciding import Given
from neardup.moderation.desk.decision import OFFERED
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.query import number
from neardup.moderation.desk.story import story_of
from neardup.moderation.desk.user_input import MAX_NOTE_LENGTH, clean_note
from neardup.problem_types import INVALID, MALFORMED, NOT_JSON, UNAUTHENTICATED, ProblemType
from neardup.records import Verdict
from neardup.telemetry.log import log
from neardup.token_file import find

PAGE_SIZE, LARGEST_PAGE = 50, 200
SCHEME = "Bearer "

M = TypeVar("M", bound=BaseModel)


def offered(value: Verdict) -> Verdict:
    """A verdict that a client may give.  Raises ValueError."""
    if value not in OFFERED:
        raise ValueError(f"a verdict is one of {', '.join(OFFERED)}")
    return value


Note = Annotated[str, AfterValidator(clean_note), Field(max_length=MAX_NOTE_LENGTH)]


class Body(BaseModel):
    """What a client sends: an unknown member is an error.  `seen` is that of the case or decision as it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seen: str


class VerdictBody(Body):
    """A verdict on the open pairs of a case, but those whose `flag_id` is in `leave_out`."""

    verdict: Annotated[Verdict, AfterValidator(offered)]
    note: Note = ""
    leave_out: frozenset[int] = frozenset()


class ReopenBody(Body):
    """The reason why a case is opened again; `seen` is its `decided_seen`."""

    note: Annotated[Note, Field(min_length=1)]


async def list_cases(request: web.Request) -> web.Response:
    """GET /api/cases."""
    moderator, desk = authorize(request), desk_of(request)
    queue = case_queue_of(request.query, desk.config, moderator)
    first, limit = number(request.query, "first") or 0, number(request.query, "limit") or PAGE_SIZE
    await desk.ledger.refresh_cases()
    return web.json_response(await desk.ledger.read(queue_object, queue, first, min(limit, LARGEST_PAGE)))


async def show_case(request: web.Request) -> web.Response:
    """GET /api/cases/ID."""
    authorize(request)
    return await _answered(request, case_object, await _case_id(request), NO_CASE)


async def lease(request: web.Request) -> web.Response:
    """POST /api/cases/ID/lease."""
    moderator, case_id = authorize(request), await _case_id(request)
    return web.json_response(lease_object(await desk_of(request).ledger.write(deciding.hold_case, case_id, moderator)))


async def decide(request: web.Request) -> web.Response:
    """POST /api/cases/ID/verdict."""
    moderator, case_id, body = authorize(request), await _case_id(request), await body_of(request, VerdictBody)
    given = Given(body.verdict, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(deciding.decide_case, case_id, body.leave_out, given)
    announce(desk_of(request), done, "verdict")
    log.info("a verdict was stored", decision=done, verdict=str(body.verdict))
    return await _answered(request, decision_object, done, NO_DECISION)


async def reopen(request: web.Request) -> web.Response:
    """POST /api/cases/ID/reopen."""
    moderator, case_id, body = authorize(request), await _case_id(request), await body_of(request, ReopenBody)
    given = Given(Verdict.REOPENED, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(deciding.reopen_case, case_id, given)
    announce(desk_of(request), done, "verdict")
    log.info("a case was reopened", decision=done)
    return await _answered(request, decision_object, done, NO_DECISION)


async def show_decision(request: web.Request) -> web.Response:
    """GET /api/decisions/N."""
    authorize(request)
    return await _answered(request, decision_object, _decision(request), NO_DECISION)


async def undo(request: web.Request) -> web.Response:
    """POST /api/decisions/N/undo."""
    moderator, done, body = authorize(request), _decision(request), await body_of(request, Body)
    await _read(request, decision_object, done, NO_DECISION)
    await desk_of(request).ledger.write(deciding.undo, done, moderator, body.seen)
    announce(desk_of(request), done, "undo")
    log.info("a verdict was undone", decision=done)
    return await _answered(request, decision_object, done, NO_DECISION)


def authorize(request: web.Request) -> Moderator:
    """The moderator whose token a request brings.  Raises Refused."""
    desk = desk_of(request)
    if not desk.has_moderators:
        raise Refused(UNAUTHENTICATED, "the API takes the tokens of moderators: name their file as review.moderators")
    given = request.headers.get("Authorization", "")
    moderator = find(desk.moderators(), given.removeprefix(SCHEME)) if given.startswith(SCHEME) else None
    if moderator is None:
        raise Refused(UNAUTHENTICATED, "send the header `Authorization: Bearer TOKEN` with a moderator's token")
    return moderator


async def _case_id(request: web.Request) -> int:
    """The case of the story in the path.  Raises Refused."""
    ledger = desk_of(request).ledger
    await ledger.refresh_cases()
    case_id = await ledger.read(cases.of_story, story_of(request))
    if case_id is None:
        raise Refused(NO_CASE, "this story is in no case")
    return case_id


def _decision(request: web.Request) -> int:
    return number(request.match_info, "decision") or 0


async def body_of(request: web.Request, model: type[M]) -> M:
    """The body of a request.  Raises Refused, which names every wrong member."""
    if request.content_type != "application/json":
        raise Refused(NOT_JSON, "send the header `Content-Type: application/json`")
    try:
        return model.model_validate_json(await request.read())
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in wrong):
        raise Refused(MALFORMED, wrong[0]["msg"])
    raise Refused(INVALID, "; ".join(": ".join([*map(str, one["loc"]), one["msg"]]) for one in wrong))


async def _read(
    request: web.Request, object_of: Callable[[sqlite3.Connection, int], Json | None], n: int, missing: ProblemType
) -> Json:
    """The object of a case or decision.  Raises Refused where there is none."""
    found = await desk_of(request).ledger.read(object_of, n)
    if found is None:
        raise Refused(missing, missing.title)
    return found


async def _answered(
    request: web.Request, object_of: Callable[[sqlite3.Connection, int], Json | None], n: int, missing: ProblemType
) -> web.Response:
    return web.json_response(await _read(request, object_of, n, missing))


ROUTES = (
    web.get("/api/cases", list_cases),
    web.get("/api/cases/{story}", show_case),
    web.post("/api/cases/{story}/lease", lease),
    web.post("/api/cases/{story}/verdict", decide),
    web.post("/api/cases/{story}/reopen", reopen),
    web.get("/api/decisions/{decision}", show_decision),
    web.post("/api/decisions/{decision}/undo", undo),
)
