"""The JSON API of the desk: the cases, leases and verdicts of its pages, for programs that bring a moderator's token.

An operation is a function of a call, which has the moderator and the body; it returns its answer, or raises Refused.
The routes and the OpenAPI document are made from the operations, in the order in which they stand here.
"""

import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, TypeVar

from aiohttp import web
from msgspec import Struct
from msgspec.structs import asdict
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
    ProblemType,
    Refused,
    expect_json,
    find_holder,
    parse_json,
    read_body,
)
from neardup.ledger import (
    Row,
    authors,
    case_queue,
    cases,
    flags,
    meaning_flags,
    removed_texts,
    serials,
    story_rows,
    verdicts,
)
from neardup.ledger import complaints as ledger_complaints
from neardup.ledger.complaints import Complaint
from neardup.ledger.marks import read_marks
from neardup.moderation.desk import api_messages as messages
from neardup.moderation.desk import complaints, deciding, meaning
from neardup.moderation.desk.addresses import (
    AUTHOR,
    MAX_NUMBER,
    PAIR,
    STORY,
    CaseQueue,
    MeaningQueue,
    Pair,
    parse_case_queue,
    parse_meaning_queue,
    read_author_id,
    read_number,
    read_pair,
    read_story_id,
)
from neardup.moderation.desk.cases import BlindCase, list_blind_cases, record_second_review
from neardup.moderation.desk.deciding import NewVerdict
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.parts import Connections, Desk, announce_undo, announce_verdict, get_desk
from neardup.moderation.desk.security import CONFLICT, HELD
from neardup.moderation.export.tables import MEANING_PAIRS, convert_meaning_row
from neardup.records import Marks, ShownId, Verdict, format_time
from neardup.source.parse import LONGEST_NAME

NO_CASE = ProblemType("no-case", 404, "The story is in no case")
NO_PAIR = ProblemType("no-pair", 404, "The two stories are no translated or retold pair")
NO_COMPLAINT = ProblemType("no-complaint", 404, "There is no complaint with this number")
NO_DECISION = ProblemType("no-decision", 404, "There is no such decision")
ALWAYS = (UNAUTHENTICATED, FAILED, UNAVAILABLE)
DECIDED = (FORBIDDEN, CONFLICT)  # what a decision may end in
PLACEHOLDER = re.compile(r"\{(\w+)(?::[^{}]*)?\}")  # of a route, with its pattern
SHOWN_PAIRS = 1_000
PAIR_IDS = "story_id", "matched_id"
T = TypeVar("T")


class Call(Struct, frozen=True):
    """A request of a moderator to a desk, with its body, None if the operation takes none."""

    request: web.Request
    desk: Desk
    moderator: Moderator
    body: Any

    @property
    def ledger(self) -> Connections:
        return self.desk.ledger

    @property
    def part(self) -> tuple[int, int]:
        """The position of the first that is asked for, and how many are.  Raises HTTPBadRequest."""
        first, limit = (read_number(self.request.query, name) for name in ("first", "limit"))
        return first or 0, min(limit or messages.PAGE_SIZE, messages.LARGEST_PAGE)

    @property
    def decision(self) -> int:
        """The decision in the path.  Raises HTTPBadRequest."""
        return read_number(self.request.match_info, "decision") or 0

    async def find_case(self) -> int:
        """The case of the story in the path.  Raises Refused."""
        await self.ledger.refresh_cases()
        return _require(await self.ledger.read(cases.find_case, read_story_id(self.request)), NO_CASE)

    async def find_complaint(self) -> Complaint:
        """The complaint in the path.  Raises Refused, and HTTPBadRequest."""
        number = read_number(self.request.match_info, "number") or 0
        return _require(await self.ledger.read(ledger_complaints.read_complaint, number), NO_COMPLAINT)

    def make_verdict(self, verdict: Verdict) -> NewVerdict:
        """A verdict with the note of the body, on what the moderator saw."""
        return NewVerdict(verdict, getattr(self.body, "note", ""), self.moderator, getattr(self.body, "seen", ""))


Work = Callable[[Call], Awaitable[messages.Answer]]
W = TypeVar("W", bound=Work)


class Operation(Struct, frozen=True):
    """One operation: `work` does it.  `problems` are those that concern it; every one may end in the others."""

    method: str
    route: str
    work: Work
    body: type[BaseModel] | None
    query: type[BaseModel] | None
    problems: tuple[ProblemType, ...]

    @property
    def path(self) -> str:
        """The route with the names of its placeholders alone."""
        return PLACEHOLDER.sub(r"{\1}", self.route)

    @property
    def names(self) -> list[str]:
        return PLACEHOLDER.findall(self.route)

    @property
    def all_problems(self) -> tuple[ProblemType, ...]:
        """What it may end in."""
        with_story = (NOT_FOUND,) if {"story", "a", "b", "author"} & {*self.names} else ()
        with_number = (INVALID,) if self.query or {"decision", "number"} & {*self.names} else ()
        with_body = WITH_BODY if self.body is not None else ()
        return (*ALWAYS, *with_story, *with_number, *with_body, *self.problems)

    async def answer(self, request: web.Request) -> web.Response:
        moderator, body = _authorize(request), None
        if self.body is not None:
            expect_json(request)
            body = parse_json(self.body, await read_body(request, BODY_SECONDS))
        answer = await self.work(Call(request, get_desk(request), moderator, body))
        return web.Response(text=answer.model_dump_json(), content_type="application/json")


OPERATIONS: list[Operation] = []


def operation(
    method: str,
    route: str,
    *problems: ProblemType,
    body: type[BaseModel] | None = None,
    query: type[BaseModel] | None = None,
) -> Callable[[W], W]:
    """Add the decorated function, whose docstring is the summary in the document, to OPERATIONS."""

    def add(work: W) -> W:
        OPERATIONS.append(Operation(method, route, work, body, query, problems))
        return work

    return add


def _authorize(request: web.Request) -> Moderator:
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


@operation("GET", "/api/cases", query=messages.CasesQuery)
async def list_cases(call: Call) -> messages.CasesAnswer:
    """List a part of a queue of cases"""
    queue, part = parse_case_queue(call.request.query, call.desk.config, call.moderator), call.part
    await call.ledger.refresh_cases()
    return await call.ledger.read(_read_cases, queue, *part)


@operation("GET", f"/api/cases/{STORY}", NO_CASE)
async def show_case(call: Call) -> messages.Case:
    """Show the case of a story"""
    return _require(await call.ledger.read(read_case, await call.find_case()), NO_CASE)


@operation("POST", f"/api/cases/{STORY}/lease", FORBIDDEN, HELD, NO_CASE)
async def hold_case(call: Call) -> messages.Lease:
    """Hold a case for 10 minutes more"""
    return _describe_lease(await call.ledger.write(deciding.hold_case, await call.find_case(), call.moderator))


@operation("POST", f"/api/cases/{STORY}/verdict", *DECIDED, HELD, NO_CASE, body=messages.VerdictBody)
async def decide_case(call: Call) -> messages.Decision:
    """Give one verdict on the open pairs of a case, or on all but some"""
    case_id, given = await call.find_case(), call.make_verdict(call.body.verdict)
    done = await call.ledger.write(deciding.decide_case, case_id, call.body.leave_out, given)
    announce_verdict(call.desk, done, given.verdict)
    return await _read_decision(call, done)


@operation("POST", f"/api/cases/{STORY}/reopen", *DECIDED, HELD, NO_CASE, body=messages.ReopenBody)
async def reopen_case(call: Call) -> messages.Decision:
    """Take back the verdicts on a case, for a reason"""
    case_id, given = await call.find_case(), call.make_verdict(Verdict.REOPENED)
    done = await call.ledger.write(deciding.reopen_case, case_id, given)
    announce_verdict(call.desk, done, given.verdict)
    return await _read_decision(call, done)


@operation("GET", "/api/decisions/{decision}", NO_DECISION)
async def show_decision(call: Call) -> messages.Decision:
    """Show a decision"""
    return await _read_decision(call, call.decision)


@operation("POST", "/api/decisions/{decision}/undo", *DECIDED, HELD, NO_DECISION, body=messages.UndoBody)
async def undo_decision(call: Call) -> messages.Decision:
    """Undo a decision"""
    await _read_decision(call, call.decision)
    await call.ledger.write(deciding.undo, call.decision, call.moderator, call.body.seen)
    announce_undo(call.desk, call.decision)
    return await _read_decision(call, call.decision)


async def _read_decision(call: Call, number: int) -> messages.Decision:
    found = _require(await call.ledger.read(deciding.read_decision, number), NO_DECISION)
    return messages.Decision(
        decision=number,
        verdict=found.verdict,
        moderator=found.moderator,
        is_undone=found.is_undone,
        cases=list(found.cases),
        pairs=list(found.pairs),
        seen=found.seen,
    )


@operation("GET", "/api/second", query=messages.Part)
async def list_second_reviews(call: Call) -> messages.SecondAnswer:
    """List the cases that wait for a blind second review by the moderator, without any verdict"""
    part, share = call.part, call.desk.config.review.second_reviews
    await call.ledger.refresh_cases()
    return await call.ledger.read(_read_second_reviews, share, call.moderator, *part)


@operation(
    "POST", f"/api/second/{STORY}/verdict", *DECIDED, HELD, NO_CASE, body=messages.SecondBody, query=messages.Part
)
async def review_case(call: Call) -> messages.SecondAnswer:
    """Judge a case that waits for a second review"""
    case_id, given = await call.find_case(), call.make_verdict(call.body.verdict)
    done = await call.ledger.write(record_second_review, case_id, given, call.desk.config.review.second_reviews)
    if done is not None:
        announce_verdict(call.desk, done, Verdict.REOPENED)
    return await list_second_reviews(call)


def _read_cases(db: sqlite3.Connection, queue: CaseQueue, first: int, limit: int) -> messages.CasesAnswer:
    rows = case_queue.select(db, queue.selection, queue.order, limit=limit, offset=first)
    counts = messages.Counts.model_validate(case_queue.count_by_filter(db, queue.selection), from_attributes=True)
    held = cases.read_held_leases(db, [row["case_id"] for row in rows])
    return messages.CasesAnswer(counts=counts, cases=_describe_cases(db, rows, held))


def read_case(db: sqlite3.Connection, case_id: int) -> messages.Case | None:
    """A case with the first of its pairs, the open ones first, and the decisions on it, the newest first."""
    row = case_queue.read_case(db, case_id)
    if row is None:
        return None
    found = deciding.list_flags_of_case(db, case_id)
    pairs = flags.list_pairs(db, list(chain(*found))[:SHOWN_PAIRS])
    [listed] = _describe_cases(db, [row], cases.read_held_leases(db, [case_id]))
    return messages.Case(
        **dict(listed),
        seen=verdicts.identify_state(db, found.open),
        decided_seen=verdicts.identify_state(db, found.decided),
        evidence=[messages.ShownPair(**pair) for pair in story_rows.show_ids(db, pairs, PAIR_IDS)],
        removed_texts=[
            messages.RemovedText(**match | {"removed_at": format_time(match["removed_at"])})
            for match in removed_texts.read_of_stories(db, [row["lead"]])
        ],
        serials=[messages.Serials(**match.as_dict()) for match in serials.list_matches_of_case(db, case_id)],
        decisions=[
            messages.GivenDecision(**given | {name: format_time(given[name]) for name in ("decided_at", "undone_at")})
            for given in verdicts.list_of_case(db, case_id)
        ],
    )


def _read_second_reviews(
    db: sqlite3.Connection, share: float, moderator: Moderator, first: int, limit: int
) -> messages.SecondAnswer:
    total, found = list_blind_cases(db, share, moderator, first, limit)
    return messages.SecondAnswer(total=total, cases=[_describe_blind_case(db, case) for case in found])


def _describe_blind_case(db: sqlite3.Connection, case: BlindCase) -> messages.BlindCase:
    [listed] = _describe_cases(db, [case.row], {})
    pairs = [messages.BlindPair(**pair) for pair in story_rows.show_ids(db, case.pairs, PAIR_IDS)]
    return messages.BlindCase(**dict(listed), seen=case.seen, evidence=pairs)


def _describe_cases(
    db: sqlite3.Connection, rows: Sequence[Row], held: Mapping[int, cases.Lease]
) -> list[messages.ListedCase]:
    shown = story_rows.read_shown_ids(db, chain.from_iterable((row["case_id"], row["lead"]) for row in rows))
    marks = read_marks(db, [row["lead"] for row in rows])
    return [_describe_case(row, shown, held.get(row["case_id"]), marks.get(row["lead"], ())) for row in rows]


def _describe_case(
    row: Row, shown: Mapping[int, ShownId], lease: cases.Lease | None, marks: Marks
) -> messages.ListedCase:
    return messages.ListedCase(
        case_id=shown[row["case_id"]],
        language=row["language"],
        lead=messages.Lead(
            story_id=shown[row["lead"]],
            title=row["title"],
            author_id=row["author"],
            published_at=format_time(row["published_at"]),
            words=row["words"],
            marks=[messages.ShownMark(**asdict(mark)) for mark in marks],
        ),
        similarity=row["similarity"],
        kinds=row["kinds"].strip(",").split(","),
        statuses=row["statuses"].strip(",").split(","),
        catalogues=[name for name in row["catalogues"].split(",") if name],
        pairs=row["flags"],
        open_pairs=row["open_flags"],
        stories=row["stories"],
        same_author=bool(row["same_author"]),
        order_known=bool(row["is_ordered"]),
        author_cases_of_plagiarism=row["history"],
        flagged_at=format_time(row["flagged_at"]),
        second_opinion_asked_by=json.loads(row["unsure"]),
        lease=lease and _describe_lease(lease),
    )


def _describe_lease(lease: cases.Lease) -> messages.Lease:
    return messages.Lease(moderator=lease.moderator, until=format_time(lease.until))


# Complaints.


@operation("GET", "/api/complaints", query=messages.ComplaintsQuery)
async def list_complaints(call: Call) -> messages.ComplaintsAnswer:
    """List the open complaints, the next deadline first, or the closed ones"""
    return await call.ledger.read(_read_complaints, *call.part, closed="closed" in call.request.query)


@operation("GET", "/api/complaints/{number}", NO_COMPLAINT)
async def show_complaint(call: Call) -> messages.ShownComplaint:
    """Show a complaint with its log, and the text of the original if it was given"""
    found = await call.find_complaint()
    text = await call.ledger.read(ledger_complaints.read_original_text, found.number)
    return messages.ShownComplaint(**_describe_complaint(found), original_text=text)


@operation("POST", "/api/complaints/{number}", *DECIDED, NO_COMPLAINT, body=messages.ComplaintBody)
async def act_on_complaint(call: Call) -> messages.ShownComplaint:
    """Do with a complaint what its page does"""
    found = await call.find_complaint()
    await complaints.perform(call.desk, found, call.body.action, call.body.note, call.moderator)
    return await show_complaint(call)


def _read_complaints(db: sqlite3.Connection, first: int, limit: int, *, closed: bool) -> messages.ComplaintsAnswer:
    listed = ledger_complaints.list_complaints(db, closed=closed, limit=limit, offset=first)
    return messages.ComplaintsAnswer(
        total=ledger_complaints.count(db, closed=closed),
        complaints=[messages.Complaint(**_describe_complaint(found)) for found in listed],
    )


def _describe_complaint(found: Complaint) -> dict[str, Any]:
    times = {name: format_time(getattr(found, name)) for name in ("received_at", "due_at", "closed_at")}
    members = {
        "story_id": found.shown,
        "original_id": found.original_shown,
        "has_original_text": found.has_text,
        "log": [step._asdict() | {"at": format_time(step.at)} for step in found.log],
    }
    return asdict(found) | times | members


# Hidden authors.


@operation("GET", "/api/hidden")
async def list_hidden(call: Call) -> messages.HiddenAnswer:
    """List the authors whose undecided stories the platform is asked to hide, and these stories"""
    return await call.ledger.read(_read_hidden)


@operation("POST", f"/api/authors/{AUTHOR}/hide", FORBIDDEN, body=messages.HidingBody)
async def hide_author(call: Call) -> messages.HiddenAnswer:
    """Ask the platform to hide the undecided stories of an author"""
    return await _write_hiding(call, deciding.hide_author)


@operation("POST", f"/api/authors/{AUTHOR}/show", FORBIDDEN, body=messages.HidingBody)
async def show_author(call: Call) -> messages.HiddenAnswer:
    """Take back that the stories of an author are hidden"""
    return await _write_hiding(call, deciding.show_author)


async def _write_hiding(
    call: Call, work: Callable[[sqlite3.Connection, str, NewVerdict], None]
) -> messages.HiddenAnswer:
    await call.ledger.write(work, read_author_id(call.request), call.make_verdict(Verdict.REOPENED))
    call.desk.wake_posting.set()
    return await list_hidden(call)


def _read_hidden(db: sqlite3.Connection) -> messages.HiddenAnswer:
    return messages.HiddenAnswer(
        authors=[
            messages.HiddenAuthor(
                author_id=row["author"],
                note=row["note"],
                moderator=row["moderator"],
                hidden_at=format_time(row["hidden_at"]),
                stories=list(story_rows.read_shown_ids(db, authors.list_undecided(db, row["author"])).values()),
            )
            for row in authors.list_hidden(db)
        ]
    )


# Translated and retold pairs, which have addresses of their own, as they are no flags.


@operation("GET", "/api/meaning", query=messages.MeaningQuery)
async def list_meaning_pairs(call: Call) -> messages.MeaningAnswer:
    """List a part of the queue of translated and retold pairs"""
    queue = parse_meaning_queue(call.request.query, call.desk.config)
    return await call.ledger.read(_read_meaning_pairs, queue, *call.part)


@operation("GET", f"/api/meaning/{PAIR}", NO_PAIR)
async def show_meaning_pair(call: Call) -> messages.MeaningPair:
    """Show the translated or retold pair of two stories"""
    return _require(await call.ledger.read(_read_meaning_pair, read_pair(call.request)), NO_PAIR)


@operation("POST", f"/api/meaning/{PAIR}/verdict", *DECIDED, NO_PAIR, body=messages.MeaningVerdictBody)
async def decide_meaning_pair(call: Call) -> messages.MeaningPair:
    """Give a verdict on a translated or retold pair"""
    given = call.make_verdict(call.body.verdict)
    done = await call.ledger.write(meaning.decide_pair, read_pair(call.request), given)
    announce_verdict(call.desk, done, given.verdict)
    return await show_meaning_pair(call)


@operation("POST", f"/api/meaning/{PAIR}/undo", *DECIDED, NO_PAIR, body=messages.UndoBody)
async def undo_meaning_pair(call: Call) -> messages.MeaningPair:
    """Undo the latest verdict on a translated or retold pair"""
    given = call.make_verdict(Verdict.REOPENED)
    announce_undo(call.desk, await call.ledger.write(meaning.undo_latest, read_pair(call.request), given))
    return await show_meaning_pair(call)


def _read_meaning_pairs(db: sqlite3.Connection, queue: MeaningQueue, first: int, limit: int) -> messages.MeaningAnswer:
    rows = list(meaning_flags.select(db, queue.selection, limit=limit, offset=first))
    total = meaning_flags.count(db, queue.selection)
    return messages.MeaningAnswer(total=total, pairs=[_describe_meaning_pair(db, row) for row in rows])


def _read_meaning_pair(db: sqlite3.Connection, pair: Pair) -> messages.MeaningPair | None:
    row = meaning_flags.read_pair(db, *pair)
    return None if row is None else _describe_meaning_pair(db, row)


def _describe_meaning_pair(db: sqlite3.Connection, row: Row) -> messages.MeaningPair:
    """The columns of the export, and `seen`, which a verdict asks for."""
    chunks = [dict(zip(("a", "b", "cosine"), chunk_pair, strict=True)) for chunk_pair in json.loads(row["chunks"])]
    [shown] = story_rows.show_ids(db, [convert_meaning_row(row)], MEANING_PAIRS.story_ids)
    return messages.MeaningPair(
        **shown | {"chunks": chunks, "seen": str(meaning_flags.identify_state(db, row["a"], row["b"]))}
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
    return make_document("The cases and verdicts of the review desk.", map(_describe, OPERATIONS), messages.Problem)


def _describe(operation: Operation) -> Described:
    return Described(
        operation.work.__name__,
        operation.method,
        operation.path,
        operation.work.__doc__ or "",
        "Takes the token of a moderator.",
        [BY_TOKEN],
        [
            *(PARAMETERS[name] for name in operation.names),
            *(list_query_parameters(operation.query) if operation.query else []),
        ],
        operation.body,
        operation.work.__annotations__["return"],
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
    *(web.route(operation.method, operation.route, operation.answer) for operation in OPERATIONS),
)
