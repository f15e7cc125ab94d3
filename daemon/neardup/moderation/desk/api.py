"""The JSON API of the desk: the cases, leases and verdicts of its pages, for programs that bring a moderator's token.

GET  /api/cases                 a queue of cases; the query is that of the page /, with first= and limit=
GET  /api/cases/ID              the case of a story
POST /api/cases/ID/lease        hold the case, or hold it longer
POST /api/cases/ID/verdict      give one verdict on the open pairs of the case, or on all but some
POST /api/cases/ID/reopen       take back the verdicts on the case, for a reason
GET  /api/decisions/N           a decision
POST /api/decisions/N/undo      undo it
GET  /api/hidden                the authors whose undecided stories the platform is asked to hide, and these stories
POST /api/authors/ID/hide       ask for that, for a reason
POST /api/authors/ID/show       take it back
GET  /api/second                the cases that wait for a blind second review by the moderator, without any verdict
POST /api/second/ID/verdict     judge one of them
GET  /api/complaints            the open complaints, the next deadline first, or with closed=1 the closed ones
GET  /api/complaints/N          a complaint with its log, and the text of the original if it was given
POST /api/complaints/N          do with it what its page does

Translated and retold pairs have addresses of their own, as they are no flags:

GET  /api/meaning               the queue; the query is that of the page /meaning, with first= and limit=
GET  /api/meaning/A/B           a pair
POST /api/meaning/A/B/verdict   give a verdict on it
POST /api/meaning/A/B/undo      undo the latest verdict
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Annotated, Any, Literal, Self, TypeVar

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from neardup.http.problems import UNAUTHENTICATED, ProblemType, Refused
from neardup.http.requests import BODY_SECONDS, expect_json, find_holder, parse_json, read_body
from neardup.ledger import authors, case_queue, cases, flags, meaning_flags, names, removed_texts, serials, verdicts
from neardup.ledger import complaints as ledger_complaints
from neardup.ledger.case_queue import Counts
from neardup.ledger.cases import Lease
from neardup.ledger.complaints import Complaint
from neardup.ledger.marks import read_marks
from neardup.moderation.desk import complaints, deciding, meaning, second_reviews
from neardup.moderation.desk.addresses import AUTHOR, PAIR, STORY, Pair, author_of, pair_of, story_of
from neardup.moderation.desk.deciding import OFFERED, NewVerdict, read_decision
from neardup.moderation.desk.moderators import MAX_NOTE_LENGTH, Moderator, clean_note
from neardup.moderation.desk.parts import announce_undo, announce_verdict, desk_of
from neardup.moderation.desk.queues import CaseQueue, MeaningQueue, case_queue_of, meaning_queue_of, number_in
from neardup.moderation.desk.second_reviews import BlindCase
from neardup.moderation.export.tables import MEANING_PAIRS, convert_meaning_row
from neardup.records import DECIDING, Marks, ShownId, Verdict, format_time

SHOWN_PAIRS = 1_000
PAIR_FIELDS = (
    "flag_id", "kind", "similarity", "status", "story_id", "story_title", "story_author_id", "matched_id",
    "matched_title", "matched_author_id", "copied_words",
)  # fmt: skip
BLIND_FIELDS = ("case_id", "language", "lead", "kinds", "catalogues", "pairs", "stories", "order_known", "flagged_at")
Json = dict[str, Any]
PAIR_IDS = "story_id", "matched_id"
PAGE_SIZE, LARGEST_PAGE = 50, 200
NO_CASE = ProblemType("no-case", 404, "The story is in no case")
NO_PAIR = ProblemType("no-pair", 404, "The two stories are no translated or retold pair")
NO_COMPLAINT = ProblemType("no-complaint", 404, "There is no complaint with this number")
NO_DECISION = ProblemType("no-decision", 404, "There is no such decision")
M = TypeVar("M", bound=BaseModel)
Note = Annotated[str, AfterValidator(clean_note), Field(max_length=MAX_NOTE_LENGTH)]


def queue_object(db: sqlite3.Connection, queue: CaseQueue, first: int, limit: int) -> Json:
    """A part of a queue of cases, from position `first`, with how many cases there are."""
    rows = case_queue.select(db, queue.selection, queue.order, limit=limit, offset=first)
    shown = names.read_shown_ids(db, chain.from_iterable((row["case_id"], row["lead"]) for row in rows))
    held = cases.read_held_leases(db, [row["case_id"] for row in rows])
    marks = read_marks(db, [row["lead"] for row in rows])
    return {
        "counts": _counts(case_queue.count_by_filter(db, queue.selection)),
        "cases": [_case(row, shown, held.get(row["case_id"]), marks.get(row["lead"], ())) for row in rows],
    }


def case_object(db: sqlite3.Connection, case_id: int) -> Json | None:
    """A case with the first of its pairs, the open ones first, and the decisions on it, the newest first."""
    row = case_queue.read_case(db, case_id)
    if row is None:
        return None
    found = deciding.flags_of_case(db, case_id)
    pairs = flags.list_pairs(db, list(chain(*found))[:SHOWN_PAIRS])
    shown = names.read_shown_ids(db, (case_id, row["lead"]))
    marks = read_marks(db, [row["lead"]]).get(row["lead"], ())
    return _case(row, shown, cases.read_held_leases(db, [case_id]).get(case_id), marks) | {
        "seen": verdicts.identify_state(db, found.open),
        "decided_seen": verdicts.identify_state(db, found.decided),
        "evidence": [{name: pair[name] for name in PAIR_FIELDS} for pair in names.show_ids(db, pairs, PAIR_IDS)],
        "removed_texts": [_removed_text(match) for match in removed_texts.read_of_stories(db, [row["lead"]])],
        "serials": [match.as_dict() for match in serials.list_matches_of_case(db, case_id)],
        "decisions": [_decision_object(given) for given in verdicts.list_of_case(db, case_id)],
    }


def second_object(db: sqlite3.Connection, share: float, moderator: Moderator, first: int, limit: int) -> Json:
    """The cases that wait for a second review, from position `first`, with nothing that a verdict has changed."""
    total, found = second_reviews.list_blind_cases(db, share, moderator, first, limit)
    return {"total": total, "cases": [_blind_case(db, case) for case in found]}


def _blind_case(db: sqlite3.Connection, case: BlindCase) -> Json:
    row = case.row
    marks = read_marks(db, [row["lead"]]).get(row["lead"], ())
    whole = _case(row, names.read_shown_ids(db, (row["case_id"], row["lead"])), None, marks)
    pairs = names.show_ids(db, case.pairs, PAIR_IDS)
    return {name: whole[name] for name in BLIND_FIELDS} | {
        "seen": case.seen,
        "evidence": [{name: pair[name] for name in PAIR_FIELDS if name != "status"} for pair in pairs],
    }


def decision_object(db: sqlite3.Connection, number: int) -> Json | None:
    """A decision with the pairs that it is about; `seen` is what undoing it asks for."""
    found = read_decision(db, number)
    if found is None:
        return None
    return {
        "decision": number,
        "verdict": found.verdict,
        "moderator": found.moderator,
        "is_undone": found.is_undone,
        "cases": list(found.cases),
        "pairs": list(map(list, found.pairs)),
        "seen": found.seen,
    }


def lease_object(lease: Lease) -> Json:
    """Who holds a case, and until when."""
    return {"moderator": lease.moderator, "until": format_time(lease.until)}


def _case(row: sqlite3.Row, shown: Mapping[int, ShownId], lease: Lease | None, marks: Marks) -> Json:
    return {
        "case_id": shown[row["case_id"]],
        "language": row["language"],
        "lead": {
            "story_id": shown[row["lead"]],
            "title": row["title"],
            "author_id": row["author"],
            "published_at": None if row["published_at"] is None else format_time(row["published_at"]),
            "words": row["words"],
            "marks": list(map(asdict, marks)),
        },
        "similarity": row["similarity"],
        "kinds": row["kinds"].strip(",").split(","),
        "statuses": row["statuses"].strip(",").split(","),
        "catalogues": [name for name in row["catalogues"].split(",") if name],
        "pairs": row["flags"],
        "open_pairs": row["open_flags"],
        "stories": row["stories"],
        "same_author": bool(row["same_author"]),
        "order_known": bool(row["is_ordered"]),
        "author_cases_of_plagiarism": row["history"],
        "flagged_at": format_time(row["flagged_at"]),
        "second_opinion_asked_by": json.loads(row["unsure"]),
        "lease": lease and lease_object(lease),
    }


def _removed_text(match: Mapping[str, Any]) -> Json:
    times = {"removed_at": format_time(match["removed_at"])}
    return {name: match[name] for name in ("removed_author", "kind", "similarity")} | times


def _decision_object(row: sqlite3.Row) -> Json:
    return {
        "decision": row["decision"],
        "verdict": row["verdict"],
        "note": row["note"],
        "moderator": row["moderator"],
        "decided_at": format_time(row["decided_at"]),
        "undone_at": None if row["undone_at"] is None else format_time(row["undone_at"]),
        "undone_by": row["undone_by"],
        "pairs": row["pairs"],
    }


def _counts(counts: Counts) -> Json:
    return {
        "total": counts.total,
        "hidden": counts.hidden,
        "languages": dict(counts.languages),
        "kinds": dict(counts.kinds),
        "statuses": dict(counts.statuses),
        "authors": dict(counts.authors),
        "catalogues": dict(counts.catalogues),
    }


# Requests.


def require_offered(value: Verdict) -> Verdict:
    """A verdict that a client may give.  Raises ValueError."""
    if value not in OFFERED:
        raise ValueError(f"a verdict is one of {', '.join(OFFERED)}")
    return value


def require_deciding(value: Verdict) -> Verdict:
    """A verdict that decides a case.  Raises ValueError."""
    if value not in DECIDING:
        raise ValueError(f"a verdict is one of {', '.join(DECIDING)}")
    return value


class Body(BaseModel):
    """What a client sends: an unknown member is an error.  `seen` is that of the case or decision as it was read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seen: str


class VerdictBody(Body):
    """A verdict on the open pairs of a case, but those whose `flag_id` is in `leave_out`."""

    verdict: Annotated[Verdict, AfterValidator(require_offered)]
    note: Note = ""
    leave_out: frozenset[int] = frozenset()


class SecondBody(Body):
    """A verdict on a case that waits for a second review."""

    verdict: Annotated[Verdict, AfterValidator(require_deciding)]
    note: Note = ""


class ReopenBody(Body):
    """The reason why a case is opened again; `seen` is its `decided_seen`."""

    note: Annotated[Note, Field(min_length=1)]


class HidingBody(BaseModel):
    """The reason why an author's stories are hidden, or shown again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    note: Note = ""


class ComplaintBody(BaseModel):
    """What is done with a complaint, one of the actions of its page, and the words that belong to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal[tuple(complaints.ACTIONS)]  # type: ignore[valid-type]
    note: Note = ""

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if self.action in complaints.NEED_WORDS and not self.note:
            raise ValueError("this action needs a note: what was answered, or why")
        return self


async def list_cases(request: web.Request) -> web.Response:
    """GET /api/cases."""
    moderator, desk = authorize(request), desk_of(request)
    queue = case_queue_of(request.query, desk.config, moderator)
    first, limit = number_in(request.query, "first") or 0, number_in(request.query, "limit") or PAGE_SIZE
    await desk.ledger.refresh_cases()
    return web.json_response(await desk.ledger.read(queue_object, queue, first, min(limit, LARGEST_PAGE)))


async def show_case(request: web.Request) -> web.Response:
    """GET /api/cases/ID."""
    authorize(request)
    return await _answer_object(request, case_object, await _case_id(request), NO_CASE)


async def hold_case(request: web.Request) -> web.Response:
    """POST /api/cases/ID/lease."""
    moderator, case_id = authorize(request), await _case_id(request)
    return web.json_response(lease_object(await desk_of(request).ledger.write(deciding.hold_case, case_id, moderator)))


async def decide_case(request: web.Request) -> web.Response:
    """POST /api/cases/ID/verdict."""
    moderator, case_id, body = authorize(request), await _case_id(request), await body_of(request, VerdictBody)
    given = NewVerdict(body.verdict, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(deciding.decide_case, case_id, body.leave_out, given)
    announce_verdict(desk_of(request), done, body.verdict)
    return await _answer_object(request, decision_object, done, NO_DECISION)


async def reopen_case(request: web.Request) -> web.Response:
    """POST /api/cases/ID/reopen."""
    moderator, case_id, body = authorize(request), await _case_id(request), await body_of(request, ReopenBody)
    given = NewVerdict(Verdict.REOPENED, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(deciding.reopen_case, case_id, given)
    announce_verdict(desk_of(request), done, given.verdict)
    return await _answer_object(request, decision_object, done, NO_DECISION)


async def show_decision(request: web.Request) -> web.Response:
    """GET /api/decisions/N."""
    authorize(request)
    return await _answer_object(request, decision_object, _decision(request), NO_DECISION)


async def undo_decision(request: web.Request) -> web.Response:
    """POST /api/decisions/N/undo."""
    moderator, done, body = authorize(request), _decision(request), await body_of(request, Body)
    await _read(request, decision_object, done, NO_DECISION)
    await desk_of(request).ledger.write(deciding.undo, done, moderator, body.seen)
    announce_undo(desk_of(request), done)
    return await _answer_object(request, decision_object, done, NO_DECISION)


async def list_second(request: web.Request) -> web.Response:
    """GET /api/second."""
    moderator, desk = authorize(request), desk_of(request)
    first, limit = number_in(request.query, "first") or 0, number_in(request.query, "limit") or PAGE_SIZE
    await desk.ledger.refresh_cases()
    share = desk.config.review.second_reviews
    found = await desk.ledger.read(second_object, share, moderator, first, min(limit, LARGEST_PAGE))
    return web.json_response(found)


async def review_case(request: web.Request) -> web.Response:
    """POST /api/second/ID/verdict; answers with the cases that wait now."""
    moderator, case_id, body = authorize(request), await _case_id(request), await body_of(request, SecondBody)
    given = NewVerdict(body.verdict, body.note, moderator, body.seen)
    desk = desk_of(request)
    done = await desk.ledger.write(second_reviews.record, case_id, given, desk.config.review.second_reviews)
    if done is not None:
        announce_verdict(desk, done, Verdict.REOPENED)
    return await list_second(request)


async def list_complaints(request: web.Request) -> web.Response:
    """GET /api/complaints."""
    authorize(request)
    read, closed = desk_of(request).ledger.read, "closed" in request.query
    first, limit = number_in(request.query, "first") or 0, number_in(request.query, "limit") or PAGE_SIZE
    listed = await read(ledger_complaints.list_complaints, closed=closed, limit=min(limit, LARGEST_PAGE), offset=first)
    total = await read(ledger_complaints.count, closed=closed)
    return web.json_response({"total": total, "complaints": list(map(_complaint_object, listed))})


async def show_complaint(request: web.Request) -> web.Response:
    """GET /api/complaints/N."""
    authorize(request)
    return web.json_response(await _read_complaint(request))


async def act_on_complaint(request: web.Request) -> web.Response:
    """POST /api/complaints/N; answers with the complaint."""
    moderator, body, number = authorize(request), await body_of(request, ComplaintBody), await _find_complaint(request)
    await complaints.perform(desk_of(request), number, body.action, body.note, moderator)
    return web.json_response(await _read_complaint(request))


async def _find_complaint(request: web.Request) -> Complaint:
    number = number_in(request.match_info, "number") or 0
    found = await desk_of(request).ledger.read(ledger_complaints.read_complaint, number)
    if found is None:
        raise Refused(NO_COMPLAINT, NO_COMPLAINT.title)
    return found


async def _read_complaint(request: web.Request) -> Json:
    found = await _find_complaint(request)
    text = await desk_of(request).ledger.read(ledger_complaints.read_original_text, found.number)
    return _complaint_object(found) | {"original_text": text}


def _complaint_object(found: Complaint) -> Json:
    members = (
        "number", "title", "language", "author_id", "complainant", "contact", "statement", "evidence", "outcome",
    )  # fmt: skip
    times = {name: format_time(getattr(found, name)) for name in ("received_at", "due_at", "closed_at")}
    return (
        {name: getattr(found, name) for name in members}
        | times
        | {
            "story_id": found.shown,
            "original_id": found.original_shown,
            "has_original_text": found.has_text,
            "log": [step._asdict() | {"at": format_time(step.at)} for step in found.log],
        }
    )


async def list_hidden(request: web.Request) -> web.Response:
    """GET /api/hidden."""
    authorize(request)
    return web.json_response({"authors": await desk_of(request).ledger.read(_list_hidden)})


async def hide_author(request: web.Request) -> web.Response:
    """POST /api/authors/ID/hide."""
    return await _change_hiding(request, deciding.hide_author)


async def show_author(request: web.Request) -> web.Response:
    """POST /api/authors/ID/show."""
    return await _change_hiding(request, deciding.show_author)


async def _change_hiding(
    request: web.Request, work: Callable[[sqlite3.Connection, str, NewVerdict], None]
) -> web.Response:
    moderator, body = authorize(request), await body_of(request, HidingBody)
    given = NewVerdict(Verdict.REOPENED, body.note, moderator, "")
    await desk_of(request).ledger.write(work, author_of(request), given)
    desk_of(request).wake_posting.set()
    return await list_hidden(request)


def _list_hidden(db: sqlite3.Connection) -> list[Json]:
    return [
        {
            "author_id": row["author"],
            "note": row["note"],
            "moderator": row["moderator"],
            "hidden_at": format_time(row["hidden_at"]),
            "stories": list(names.read_shown_ids(db, authors.list_undecided(db, row["author"])).values()),
        }
        for row in authors.list_hidden(db)
    ]


def authorize(request: web.Request) -> Moderator:
    """The moderator whose token a request brings.  Raises Refused."""
    desk = desk_of(request)
    if not desk.has_moderators:
        raise Refused(UNAUTHENTICATED, "the API takes the tokens of moderators: name their file as review.moderators")
    return find_holder(request, desk.moderators())


async def _case_id(request: web.Request) -> int:
    """The case of the story in the path.  Raises Refused."""
    ledger = desk_of(request).ledger
    await ledger.refresh_cases()
    case_id = await ledger.read(cases.find_case, story_of(request))
    if case_id is None:
        raise Refused(NO_CASE, "this story is in no case")
    return case_id


def _decision(request: web.Request) -> int:
    return number_in(request.match_info, "decision") or 0


async def body_of(request: web.Request, model: type[M]) -> M:
    """The body of a request.  Raises Refused, which names every wrong member."""
    expect_json(request)
    return parse_json(model, await read_body(request, BODY_SECONDS))


async def _read(
    request: web.Request, object_of: Callable[[sqlite3.Connection, int], Json | None], n: int, missing: ProblemType
) -> Json:
    """The object of a case or decision.  Raises Refused where there is none."""
    found = await desk_of(request).ledger.read(object_of, n)
    if found is None:
        raise Refused(missing, missing.title)
    return found


async def _answer_object(
    request: web.Request, object_of: Callable[[sqlite3.Connection, int], Json | None], n: int, missing: ProblemType
) -> web.Response:
    return web.json_response(await _read(request, object_of, n, missing))


ROUTES = (
    web.get("/api/cases", list_cases),
    web.get(f"/api/cases/{STORY}", show_case),
    web.post(f"/api/cases/{STORY}/lease", hold_case),
    web.post(f"/api/cases/{STORY}/verdict", decide_case),
    web.post(f"/api/cases/{STORY}/reopen", reopen_case),
    web.get("/api/decisions/{decision}", show_decision),
    web.post("/api/decisions/{decision}/undo", undo_decision),
    web.get("/api/second", list_second),
    web.post(f"/api/second/{STORY}/verdict", review_case),
    web.get("/api/complaints", list_complaints),
    web.get("/api/complaints/{number}", show_complaint),
    web.post("/api/complaints/{number}", act_on_complaint),
    web.get("/api/hidden", list_hidden),
    web.post(f"/api/authors/{AUTHOR}/hide", hide_author),
    web.post(f"/api/authors/{AUTHOR}/show", show_author),
)


# Translated and retold pairs.


class MeaningVerdictBody(Body):
    """A verdict on a pair, whose `seen` is that of the pair as it was read."""

    verdict: Annotated[Verdict, AfterValidator(require_offered)]
    note: Note = ""


async def list_meaning_pairs(request: web.Request) -> web.Response:
    """GET /api/meaning."""
    authorize(request)
    desk, queue = desk_of(request), meaning_queue_of(request.query, desk_of(request).config)
    first, limit = number_in(request.query, "first") or 0, number_in(request.query, "limit") or PAGE_SIZE
    return web.json_response(await desk.ledger.read(_meaning_queue_object, queue, first, min(limit, LARGEST_PAGE)))


async def show_meaning_pair(request: web.Request) -> web.Response:
    """GET /api/meaning/A/B."""
    authorize(request)
    return await _answered_meaning_pair(request, pair_of(request))


async def decide_meaning_pair(request: web.Request) -> web.Response:
    """POST /api/meaning/A/B/verdict."""
    moderator, pair, body = authorize(request), pair_of(request), await body_of(request, MeaningVerdictBody)
    given = NewVerdict(body.verdict, body.note, moderator, body.seen)
    done = await desk_of(request).ledger.write(meaning.decide_pair, pair, given)
    announce_verdict(desk_of(request), done, body.verdict)
    return await _answered_meaning_pair(request, pair)


async def undo_meaning_pair(request: web.Request) -> web.Response:
    """POST /api/meaning/A/B/undo."""
    moderator, pair, body = authorize(request), pair_of(request), await body_of(request, Body)
    given = NewVerdict(Verdict.REOPENED, "", moderator, body.seen)
    undone = await desk_of(request).ledger.write(meaning.undo_latest, pair, given)
    announce_undo(desk_of(request), undone)
    return await _answered_meaning_pair(request, pair)


async def _answered_meaning_pair(request: web.Request, pair: Pair) -> web.Response:
    found = await desk_of(request).ledger.read(_meaning_pair_object, pair)
    if found is None:
        raise Refused(NO_PAIR, NO_PAIR.title)
    return web.json_response(found)


def _meaning_queue_object(db: sqlite3.Connection, queue: MeaningQueue, first: int, limit: int) -> Json:
    rows = list(meaning_flags.select(db, queue.selection, limit=limit, offset=first))
    return {"total": meaning_flags.count(db, queue.selection), "pairs": [_meaning_object(db, row) for row in rows]}


def _meaning_pair_object(db: sqlite3.Connection, pair: Pair) -> Json | None:
    row = meaning_flags.read_pair(db, *pair)
    return None if row is None else _meaning_object(db, row)


def _meaning_object(db: sqlite3.Connection, row: sqlite3.Row) -> Json:
    """The columns of the export, and `seen`, which a verdict asks for."""
    chunks = [dict(zip(("a", "b", "cosine"), chunk_pair, strict=True)) for chunk_pair in json.loads(row["chunks"])]
    [shown] = names.show_ids(db, [convert_meaning_row(row)], MEANING_PAIRS.story_ids)
    return {**shown, "chunks": chunks, "seen": str(meaning_flags.identify_state(db, row["a"], row["b"]))}


MEANING_ROUTES = (
    web.get("/api/meaning", list_meaning_pairs),
    web.get(f"/api/meaning/{PAIR}", show_meaning_pair),
    web.post(f"/api/meaning/{PAIR}/verdict", decide_meaning_pair),
    web.post(f"/api/meaning/{PAIR}/undo", undo_meaning_pair),
)
