"""The JSON API of the desk: the cases, leases and verdicts of its pages, for programs that bring a moderator's token.

An operation is a function of a call, which has the moderator and the body; it returns its answer, or raises Refused.
The routes and the OpenAPI document are made from the table.
"""

import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

from aiohttp import web
from msgspec import Struct
from pydantic import BaseModel

from neardup.http.openapi import (
    BY_TOKEN,
    WITH_BODY,
    Described,
    list_query_parameters,
    make_document,
    make_path_parameter,
)
from neardup.http.requests import (
    BODY_SECONDS,
    FAILED,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    UNAUTHENTICATED,
    UNAVAILABLE,
    Handler,
    ProblemType,
    Refused,
    expect_json,
    find_holder,
    parse_json,
    read_body,
)
from neardup.ledger import cases
from neardup.ledger import complaints as ledger_complaints
from neardup.ledger.complaints import Complaint
from neardup.moderation.desk import api_answers, complaints, deciding, meaning
from neardup.moderation.desk import api_messages as messages
from neardup.moderation.desk.addresses import (
    AUTHOR,
    MAX_NUMBER,
    PAIR,
    STORY,
    parse_case_queue,
    parse_meaning_queue,
    read_author_id,
    read_number,
    read_pair,
    read_story_id,
)
from neardup.moderation.desk.api_messages import Problem
from neardup.moderation.desk.cases import record_second_review
from neardup.moderation.desk.deciding import NewVerdict
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.parts import Desk, announce_undo, announce_verdict, get_desk
from neardup.moderation.desk.security import CONFLICT, HELD
from neardup.records import Verdict
from neardup.source.parse import LONGEST_NAME

NO_CASE = ProblemType("no-case", 404, "The story is in no case")
NO_PAIR = ProblemType("no-pair", 404, "The two stories are no translated or retold pair")
NO_COMPLAINT = ProblemType("no-complaint", 404, "There is no complaint with this number")
NO_DECISION = ProblemType("no-decision", 404, "There is no such decision")
ALWAYS = (UNAUTHENTICATED, FAILED, UNAVAILABLE)
DECIDED = (FORBIDDEN, CONFLICT)  # what a decision may end in
PLACEHOLDER = re.compile(r"\{(\w+)(?::[^{}]*)?\}")  # of a route, with its pattern
T = TypeVar("T")


class Call(Struct, frozen=True):
    """A request of a moderator to a desk, with its body, None if the operation takes none."""

    request: web.Request
    desk: Desk
    moderator: Moderator
    body: Any

    @property
    def part(self) -> tuple[int, int]:
        """The position of the first that is asked for, and how many are.  Raises HTTPBadRequest."""
        first, limit = (read_number(self.request.query, name) for name in ("first", "limit"))
        return first or 0, min(limit or messages.PAGE_SIZE, messages.LARGEST_PAGE)

    async def find_case(self) -> int:
        """The case of the story in the path.  Raises Refused."""
        await self.desk.ledger.refresh_cases()
        found = await self.desk.ledger.read(cases.find_case, read_story_id(self.request))
        return _require(found, NO_CASE)

    @property
    def decision(self) -> int:
        """The decision in the path.  Raises HTTPBadRequest."""
        return read_number(self.request.match_info, "decision") or 0

    def make_verdict(self, verdict: Verdict) -> NewVerdict:
        """A verdict with the note of the body, on what the moderator saw."""
        return NewVerdict(verdict, getattr(self.body, "note", ""), self.moderator, getattr(self.body, "seen", ""))


class Operation(Struct, frozen=True):
    """One operation: `work` does it.  `problems` are those that concern it; every one may end in the others."""

    method: str
    route: str
    summary: str
    request: type[BaseModel] | None
    answer: type[messages.Answer]
    work: Callable[[Call], Awaitable[messages.Answer]]
    problems: tuple[ProblemType, ...] = ()
    query: type[BaseModel] | None = None

    @property
    def path(self) -> str:
        """The route with the names of its placeholders alone."""
        return PLACEHOLDER.sub(r"{\1}", self.route)

    @property
    def names(self) -> list[str]:
        """The names of the placeholders."""
        return [placeholder[1] for placeholder in PLACEHOLDER.finditer(self.route)]

    @property
    def all_problems(self) -> tuple[ProblemType, ...]:
        """What it may end in."""
        with_story = (NOT_FOUND,) if {"story", "a", "b", "author"} & {*self.names} else ()
        with_number = (INVALID,) if self.query or {"decision", "number"} & {*self.names} else ()
        with_body = WITH_BODY if self.request is not None else ()
        return (*ALWAYS, *with_story, *with_number, *with_body, *self.problems)


def make_endpoint(operation: Operation) -> Handler:
    """The handler of an operation's route."""

    async def handle(request: web.Request) -> web.Response:
        desk, moderator, body = get_desk(request), authorize(request), None
        if operation.request is not None:
            expect_json(request)
            body = parse_json(operation.request, await read_body(request, BODY_SECONDS))
        answer = await operation.work(Call(request, desk, moderator, body))
        return web.Response(text=answer.model_dump_json(), content_type="application/json")

    return handle


def authorize(request: web.Request) -> Moderator:
    """The moderator whose token a request brings.  Raises Refused."""
    desk = get_desk(request)
    if not desk.has_moderators:
        raise Refused(UNAUTHENTICATED, "the API takes the tokens of moderators: name their file as review.moderators")
    return find_holder(request, desk.moderators())


def _require(found: T | None, missing: ProblemType) -> T:
    """What was found.  Raises Refused where there is nothing."""
    if found is None:
        raise Refused(missing, missing.title)
    return found


# Cases and decisions.


async def list_cases(call: Call) -> messages.CasesAnswer:
    """GET /api/cases."""
    queue = parse_case_queue(call.request.query, call.desk.config, call.moderator)
    part = call.part
    await call.desk.ledger.refresh_cases()
    return await call.desk.ledger.read(api_answers.list_cases, queue, *part)


async def show_case(call: Call) -> messages.Case:
    """GET /api/cases/ID."""
    return _require(await call.desk.ledger.read(api_answers.read_case, await call.find_case()), NO_CASE)


async def hold_case(call: Call) -> messages.Lease:
    """POST /api/cases/ID/lease."""
    lease = await call.desk.ledger.write(deciding.hold_case, await call.find_case(), call.moderator)
    return api_answers.describe_lease(lease)


async def decide_case(call: Call) -> messages.Decision:
    """POST /api/cases/ID/verdict."""
    case_id, given = await call.find_case(), call.make_verdict(call.body.verdict)
    done = await call.desk.ledger.write(deciding.decide_case, case_id, call.body.leave_out, given)
    announce_verdict(call.desk, done, given.verdict)
    return await _read_decision(call, done)


async def reopen_case(call: Call) -> messages.Decision:
    """POST /api/cases/ID/reopen."""
    case_id, given = await call.find_case(), call.make_verdict(Verdict.REOPENED)
    done = await call.desk.ledger.write(deciding.reopen_case, case_id, given)
    announce_verdict(call.desk, done, given.verdict)
    return await _read_decision(call, done)


async def show_decision(call: Call) -> messages.Decision:
    """GET /api/decisions/N."""
    return await _read_decision(call, call.decision)


async def undo_decision(call: Call) -> messages.Decision:
    """POST /api/decisions/N/undo."""
    await _read_decision(call, call.decision)
    await call.desk.ledger.write(deciding.undo, call.decision, call.moderator, call.body.seen)
    announce_undo(call.desk, call.decision)
    return await _read_decision(call, call.decision)


async def _read_decision(call: Call, number: int) -> messages.Decision:
    return _require(await call.desk.ledger.read(api_answers.read_decision, number), NO_DECISION)


async def list_second_reviews(call: Call) -> messages.SecondAnswer:
    """GET /api/second."""
    part, share = call.part, call.desk.config.review.second_reviews
    await call.desk.ledger.refresh_cases()
    return await call.desk.ledger.read(api_answers.list_second_reviews, share, call.moderator, *part)


async def review_case(call: Call) -> messages.SecondAnswer:
    """POST /api/second/ID/verdict; answers with the cases that wait now."""
    case_id, given, share = (
        await call.find_case(),
        call.make_verdict(call.body.verdict),
        call.desk.config.review.second_reviews,
    )
    done = await call.desk.ledger.write(record_second_review, case_id, given, share)
    if done is not None:
        announce_verdict(call.desk, done, Verdict.REOPENED)
    return await list_second_reviews(call)


# Complaints.


async def list_complaints(call: Call) -> messages.ComplaintsAnswer:
    """GET /api/complaints."""
    closed = "closed" in call.request.query
    return await call.desk.ledger.read(api_answers.list_complaints, *call.part, closed=closed)


async def show_complaint(call: Call) -> messages.ShownComplaint:
    """GET /api/complaints/N."""
    return await call.desk.ledger.read(api_answers.show_complaint, await _find_complaint(call))


async def act_on_complaint(call: Call) -> messages.ShownComplaint:
    """POST /api/complaints/N; answers with the complaint."""
    found = await _find_complaint(call)
    await complaints.perform(call.desk, found, call.body.action, call.body.note, call.moderator)
    return await show_complaint(call)


async def _find_complaint(call: Call) -> Complaint:
    number = read_number(call.request.match_info, "number") or 0
    return _require(await call.desk.ledger.read(ledger_complaints.read_complaint, number), NO_COMPLAINT)


# Hidden authors.


async def list_hidden(call: Call) -> messages.HiddenAnswer:
    """GET /api/hidden."""
    return await call.desk.ledger.read(api_answers.list_hidden)


async def hide_author(call: Call) -> messages.HiddenAnswer:
    """POST /api/authors/ID/hide."""
    await call.desk.ledger.write(
        deciding.hide_author, read_author_id(call.request), call.make_verdict(Verdict.REOPENED)
    )
    call.desk.wake_posting.set()
    return await list_hidden(call)


async def show_author(call: Call) -> messages.HiddenAnswer:
    """POST /api/authors/ID/show."""
    await call.desk.ledger.write(
        deciding.show_author, read_author_id(call.request), call.make_verdict(Verdict.REOPENED)
    )
    call.desk.wake_posting.set()
    return await list_hidden(call)


# Translated and retold pairs, which have addresses of their own, as they are no flags.


async def list_meaning_pairs(call: Call) -> messages.MeaningAnswer:
    """GET /api/meaning."""
    queue = parse_meaning_queue(call.request.query, call.desk.config)
    return await call.desk.ledger.read(api_answers.list_meaning_pairs, queue, *call.part)


async def show_meaning_pair(call: Call) -> messages.MeaningPair:
    """GET /api/meaning/A/B."""
    return _require(await call.desk.ledger.read(api_answers.read_meaning_pair, read_pair(call.request)), NO_PAIR)


async def decide_meaning_pair(call: Call) -> messages.MeaningPair:
    """POST /api/meaning/A/B/verdict."""
    given = call.make_verdict(call.body.verdict)
    done = await call.desk.ledger.write(meaning.decide_pair, read_pair(call.request), given)
    announce_verdict(call.desk, done, given.verdict)
    return await show_meaning_pair(call)


async def undo_meaning_pair(call: Call) -> messages.MeaningPair:
    """POST /api/meaning/A/B/undo."""
    given = call.make_verdict(Verdict.REOPENED)
    undone = await call.desk.ledger.write(meaning.undo_latest, read_pair(call.request), given)
    announce_undo(call.desk, undone)
    return await show_meaning_pair(call)


OPERATIONS = (
    Operation(
        "GET",
        "/api/cases",
        "List a part of a queue of cases",
        None,
        messages.CasesAnswer,
        list_cases,
        query=messages.CasesQuery,
    ),
    Operation("GET", f"/api/cases/{STORY}", "Show the case of a story", None, messages.Case, show_case, (NO_CASE,)),
    Operation(
        "POST",
        f"/api/cases/{STORY}/lease",
        "Hold a case for 10 minutes more",
        None,
        messages.Lease,
        hold_case,
        (FORBIDDEN, HELD, NO_CASE),
    ),
    Operation(
        "POST",
        f"/api/cases/{STORY}/verdict",
        "Give one verdict on the open pairs of a case, or on all but some",
        messages.VerdictBody,
        messages.Decision,
        decide_case,
        (*DECIDED, HELD, NO_CASE),
    ),
    Operation(
        "POST",
        f"/api/cases/{STORY}/reopen",
        "Take back the verdicts on a case, for a reason",
        messages.ReopenBody,
        messages.Decision,
        reopen_case,
        (*DECIDED, HELD, NO_CASE),
    ),
    Operation(
        "GET",
        "/api/decisions/{decision}",
        "Show a decision",
        None,
        messages.Decision,
        show_decision,
        (NO_DECISION,),
    ),
    Operation(
        "POST",
        "/api/decisions/{decision}/undo",
        "Undo a decision",
        messages.UndoBody,
        messages.Decision,
        undo_decision,
        (*DECIDED, HELD, NO_DECISION),
    ),
    Operation(
        "GET",
        "/api/second",
        "List the cases that wait for a blind second review by the moderator, without any verdict",
        None,
        messages.SecondAnswer,
        list_second_reviews,
        query=messages.Part,
    ),
    Operation(
        "POST",
        f"/api/second/{STORY}/verdict",
        "Judge a case that waits for a second review",
        messages.SecondBody,
        messages.SecondAnswer,
        review_case,
        (*DECIDED, HELD, NO_CASE),
        query=messages.Part,
    ),
    Operation(
        "GET",
        "/api/complaints",
        "List the open complaints, the next deadline first, or the closed ones",
        None,
        messages.ComplaintsAnswer,
        list_complaints,
        query=messages.ComplaintsQuery,
    ),
    Operation(
        "GET",
        "/api/complaints/{number}",
        "Show a complaint with its log, and the text of the original if it was given",
        None,
        messages.ShownComplaint,
        show_complaint,
        (NO_COMPLAINT,),
    ),
    Operation(
        "POST",
        "/api/complaints/{number}",
        "Do with a complaint what its page does",
        messages.ComplaintBody,
        messages.ShownComplaint,
        act_on_complaint,
        (*DECIDED, NO_COMPLAINT),
    ),
    Operation(
        "GET",
        "/api/hidden",
        "List the authors whose undecided stories the platform is asked to hide, and these stories",
        None,
        messages.HiddenAnswer,
        list_hidden,
    ),
    Operation(
        "POST",
        f"/api/authors/{AUTHOR}/hide",
        "Ask the platform to hide the undecided stories of an author",
        messages.HidingBody,
        messages.HiddenAnswer,
        hide_author,
        (FORBIDDEN,),
    ),
    Operation(
        "POST",
        f"/api/authors/{AUTHOR}/show",
        "Take back that the stories of an author are hidden",
        messages.HidingBody,
        messages.HiddenAnswer,
        show_author,
        (FORBIDDEN,),
    ),
    Operation(
        "GET",
        "/api/meaning",
        "List a part of the queue of translated and retold pairs",
        None,
        messages.MeaningAnswer,
        list_meaning_pairs,
        query=messages.MeaningQuery,
    ),
    Operation(
        "GET",
        f"/api/meaning/{PAIR}",
        "Show the translated or retold pair of two stories",
        None,
        messages.MeaningPair,
        show_meaning_pair,
        (NO_PAIR,),
    ),
    Operation(
        "POST",
        f"/api/meaning/{PAIR}/verdict",
        "Give a verdict on a translated or retold pair",
        messages.MeaningVerdictBody,
        messages.MeaningPair,
        decide_meaning_pair,
        (*DECIDED, NO_PAIR),
    ),
    Operation(
        "POST",
        f"/api/meaning/{PAIR}/undo",
        "Undo the latest verdict on a translated or retold pair",
        messages.UndoBody,
        messages.MeaningPair,
        undo_meaning_pair,
        (*DECIDED, NO_PAIR),
    ),
)


# The OpenAPI document: what `http.openapi` is to say of each operation.

DOCUMENT = "/api/openapi.json"
STORY_ID = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
NUMBER = {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
PARAMETERS = {
    "story": make_path_parameter("story", "The id of a story in the listing: an integer, or a name.", STORY_ID),
    "a": make_path_parameter("a", "The id of one story.", STORY_ID),
    "b": make_path_parameter("b", "The id of the other story.", STORY_ID),
    "author": make_path_parameter(
        "author", "The author's id: an integer, or a text.", {"type": "string", "minLength": 1}
    ),
    "decision": make_path_parameter("decision", "The number of the decision.", NUMBER),
    "number": make_path_parameter("number", "The number of the complaint.", NUMBER),
}


def describe_api() -> dict[str, Any]:
    """The OpenAPI document."""
    return make_document("The cases and verdicts of the review desk.", map(_describe, OPERATIONS), Problem)


def _describe(operation: Operation) -> Described:
    return Described(
        operation.work.__name__,
        operation.method,
        operation.path,
        operation.summary,
        "Takes the token of a moderator.",
        [BY_TOKEN],
        [
            *(PARAMETERS[name] for name in operation.names),
            *(list_query_parameters(operation.query) if operation.query else []),
        ],
        operation.request,
        operation.answer,
        operation.all_problems,
    )


@cache
def _dump_document() -> str:
    return json.dumps(describe_api())


async def show_document(_: web.Request) -> web.Response:
    """GET /api/openapi.json, for which no token is needed."""
    return web.Response(text=_dump_document(), content_type="application/json")


ROUTES = (
    web.get(DOCUMENT, show_document),
    *(web.route(operation.method, operation.route, make_endpoint(operation)) for operation in OPERATIONS),
)
