"""The rights of authors over HTTP: complaints, permissions, and the watch of an author."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import asdict

from neardup.http.requests import INVALID, TOO_LARGE, ProblemType, Refused
from neardup.ledger import authors, complaints, now_ms, permissions, snapshot
from neardup.ledger.complaints import Closed, Complaint
from neardup.ledger.permissions import Grant, PermissionFilter, PermissionRefused, Refusal
from neardup.option_values import Right
from neardup.query.complaints import ComplaintRefused, GivenComplaint, Why, receive
from neardup.serve import rights_messages as messages
from neardup.serve.messages import parse_story_id
from neardup.serve.operations import Operations
from neardup.serve.service import Deadline, ServiceParts
from neardup.serve.stories import NO_STORY, UNKNOWN_STORY
from neardup.serve.tokens import EXPIRED_TOKEN
from neardup.source.parse import make_printable, parse_time

UNKNOWN_COMPLAINT = ProblemType("unknown-complaint", 404, "There is no complaint with this number")
OWN_STORY = ProblemType("own-story", 409, "The story is the complainant's own, or its own original")
DUPLICATE_COMPLAINT = ProblemType("duplicate-complaint", 409, "The complainant complained of this before")
CLOSED_COMPLAINT = ProblemType("closed-complaint", 409, "The complaint is closed")
OF_COMPLAINTS = {
    Why.UNKNOWN_STORY: UNKNOWN_STORY,
    Why.OWN_STORY: OWN_STORY,
    Why.NO_STORY: NO_STORY,
    Why.DUPLICATE: DUPLICATE_COMPLAINT,
    Why.TOO_LARGE: TOO_LARGE,
    Why.INVALID: INVALID,
}
UNKNOWN_PERMISSION = ProblemType("unknown-permission", 404, "There is no such permission")
NOT_ENTERED = ProblemType("permission-refused", 409, "The permission is not entered, or not revoked")
NO_AUTHOR_KEY = ProblemType("no-author-key", 404, "No key signs the tokens of authors")
OTHER_AUTHORS_TOKEN = ProblemType("other-authors-token", 403, "The token is that of another author")
MOST_NEWS = 20  # copies of an author in a digest
T = TypeVar("T")
OPERATIONS = Operations()


# Complaints; `query.complaints` receives them and makes their evidence.


@OPERATIONS.add(
    "POST", "/v1/complaints", Right.COMPLAIN, UNKNOWN_STORY, OWN_STORY, DUPLICATE_COMPLAINT, NO_STORY, lane="long"
)
async def complain(parts: ServiceParts, request: messages.ComplaintRequest, deadline: Deadline) -> messages.Complaint:
    """Complain of a story; the answer has the number of the complaint, its deadline and the evidence"""
    given = GivenComplaint(
        parse_story_id(request.story_id).number,
        request.complainant,
        request.contact,
        request.statement,
        None if request.original_id is None else parse_story_id(request.original_id).number,
        request.original_text,
        request.author_id or None,
    )
    try:
        return _make_complaint(await receive(parts.complaints, given, acknowledged=True, deadline=deadline.left))
    except ComplaintRefused as error:
        raise Refused(OF_COMPLAINTS[error.why], str(error), complaint=error.number) from None


@OPERATIONS.add("GET", "/v1/complaints", Right.COMPLAIN)
async def complaints_of(parts: ServiceParts, query: messages.ComplaintsQuery, _: Deadline) -> messages.ComplaintsAnswer:
    """List the open complaints, the next deadline first, or the closed ones"""
    listed = await parts.reader.do(
        complaints.list_complaints, closed=query.closed, limit=query.limit, offset=query.first
    )
    total = await parts.reader.do(complaints.count, closed=query.closed)
    return messages.ComplaintsAnswer(total=total, complaints=list(map(_make_complaint, listed)))


@OPERATIONS.add("GET", "/v1/complaints/{number}", Right.COMPLAIN, UNKNOWN_COMPLAINT)
async def complaint_of(parts: ServiceParts, number: int, _: Deadline) -> messages.Complaint:
    """Show a complaint with its evidence and its log"""
    found = await parts.reader.do(complaints.read_complaint, number)
    if found is None:
        raise _refuse_unknown_complaint(number)
    return _make_complaint(found)


@OPERATIONS.add("POST", "/v1/complaints/{number}/answers", Right.COMPLAIN, UNKNOWN_COMPLAINT, CLOSED_COMPLAINT)
async def answer_complaint(
    parts: ServiceParts, number: int, request: messages.ComplaintAnswerRequest, deadline: Deadline
) -> messages.Complaint:
    """Record what the author or the complainant answers; the same words again change nothing"""
    await complaint_of(parts, number, deadline)
    try:
        await parts.complaints.write(complaints.log_answer, number, request.by, None, request.text)
    except Closed as error:
        raise Refused(CLOSED_COMPLAINT, str(error)) from None
    return await complaint_of(parts, number, deadline)


@OPERATIONS.add("DELETE", "/v1/complaints/{number}/complainant", Right.FORGET, UNKNOWN_COMPLAINT)
async def forget_complainant(parts: ServiceParts, number: int, _: Deadline) -> messages.ForgottenComplainant:
    """Forget the name, the contact and the words of a complainant; the complaint goes on"""
    if not await parts.complaints.write(complaints.forget_complainant, number, None):
        raise _refuse_unknown_complaint(number)
    return messages.ForgottenComplainant(number=number)


def _refuse_unknown_complaint(number: int) -> Refused:
    return Refused(UNKNOWN_COMPLAINT, f"there is no complaint {number}")


def _make_complaint(found: Complaint) -> messages.Complaint:
    shown = {"story_id": found.shown, "original_id": found.original_shown, "has_original_text": found.has_text}
    log = [messages.ComplaintStep.model_validate(logged, from_attributes=True) for logged in found.log]
    return messages.Complaint(**asdict(found) | shown | {"log": log})


# Permissions; `ledger.permissions` says what they mean.


@OPERATIONS.add("POST", "/v1/permissions", Right.PERMIT, NOT_ENTERED, UNKNOWN_STORY)
async def enter_permission(
    parts: ServiceParts, request: messages.PermissionRequest, caller: str, deadline: Deadline
) -> messages.Permission:
    """Enter a permission: who may use whose text"""
    grant = Grant(
        request.granted_by or None,
        None if request.story_id is None else parse_story_id(request.story_id).number,
        make_printable(request.catalogue),
        request.granted_to or None,
        make_printable(request.licence),
        make_printable(request.note) or "",
        None if request.since is None else parse_time(request.since),
        None if request.until is None else parse_time(request.until),
        make_printable(request.serial),
    )
    try:
        permission_id = await parts.submissions.write(permissions.enter, grant, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_STORY if error.reason is Refusal.UNKNOWN_STORY else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await permission_of(parts, permission_id, deadline)


@OPERATIONS.add("GET", "/v1/permissions", Right.CHECK)
async def permissions_of(
    parts: ServiceParts, query: messages.PermissionsQuery, _: Deadline
) -> messages.PermissionsAnswer:
    """List permissions, those entered last first"""
    story = None if query.story_id is None else parse_story_id(query.story_id).number
    chosen, now = PermissionFilter(None, query.author_id or None, story, query.catalogue, not query.ended), now_ms()
    rows = await parts.reader.do(permissions.select, chosen, now, limit=query.limit, offset=query.first)
    total = await parts.reader.do(permissions.count, chosen, now)
    return messages.PermissionsAnswer(total=total, permissions=list(map(_make_permission, rows)))


@OPERATIONS.add("GET", "/v1/permissions/{number}", Right.CHECK, UNKNOWN_PERMISSION)
async def permission_of(parts: ServiceParts, number: int, _: Deadline) -> messages.Permission:
    """Show a permission"""
    row = await parts.reader.do(permissions.read, number, now_ms())
    if row is None:
        raise Refused(UNKNOWN_PERMISSION, f"there is no permission {number}")
    return _make_permission(row)


@OPERATIONS.add("DELETE", "/v1/permissions/{number}", Right.PERMIT, UNKNOWN_PERMISSION, NOT_ENTERED)
async def revoke_permission(parts: ServiceParts, number: int, caller: str, deadline: Deadline) -> messages.Permission:
    """Revoke a permission; it stays on record"""
    try:
        await parts.submissions.write(permissions.revoke, number, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_PERMISSION if error.reason is Refusal.UNKNOWN_PERMISSION else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await permission_of(parts, number, deadline)


def _make_permission(row: Mapping[str, Any]) -> messages.Permission:
    return messages.Permission.model_validate(dict(row))


# The watch of an author: a token, the copies of their own stories, and what is new for all authors.


@OPERATIONS.add("POST", "/v1/authors/{author}/token", Right.AUTHORS, NO_AUTHOR_KEY)
async def make_author_token(parts: ServiceParts, author_id: str, _: Deadline) -> messages.AuthorToken:
    """Make a token by which an author reads the copies of their own stories, until it expires"""
    if parts.author_tokens is None:
        raise Refused(NO_AUTHOR_KEY, "name a key as serve.author_key")
    token, expires_at = parts.author_tokens.make(author_id, now_ms())
    return messages.AuthorToken(author_id=author_id, token=token, expires_at=expires_at)


@OPERATIONS.add(
    "GET", "/v1/authors/{author}/copies", Right.AUTHORS, EXPIRED_TOKEN, OTHER_AUTHORS_TOKEN, admits_author=True
)
async def author_copies_of(
    parts: ServiceParts, author_id: str, query: messages.CopiesQuery, _: Deadline
) -> messages.AuthorCopies:
    """List the stories by others that hold text of an author's stories, the latest flag first"""
    since = 0 if query.since is None else parse_time(query.since)
    found = await parts.reader.do(
        _read_in_snapshot, authors.list_copies, author_id, since, query.before, query.limit + 1
    )
    shown = found[: query.limit]
    return messages.AuthorCopies(
        author_id=author_id,
        copies=[_make_author_copy(parts, copy) for copy in shown],
        next=shown[-1].flag_id if len(found) > query.limit else None,
    )


@OPERATIONS.add("GET", "/v1/authors/copies", Right.AUTHORS)
async def new_copies(parts: ServiceParts, query: messages.DigestQuery, _: Deadline) -> messages.Digest:
    """List the new copies since a time, by the author whose text they hold"""
    found = await parts.reader.do(
        _read_in_snapshot,
        authors.list_news,
        parse_time(query.since),
        query.after or None,  # as on the first page
        query.limit + 1,
        MOST_NEWS,
    )
    shown = found[: query.limit]
    return messages.Digest(
        authors=[
            messages.AuthorNews(
                author_id=news.author_id,
                total=news.total,
                copies=[_make_author_copy(parts, copy) for copy in news.copies],
            )
            for news in shown
        ],
        next=shown[-1].author_id if len(found) > query.limit else None,
    )


def _read_in_snapshot(db: sqlite3.Connection, work: Callable[..., list[T]], *arguments: object) -> list[T]:
    with snapshot(db):
        return work(db, *arguments)


def _make_author_copy(parts: ServiceParts, copy: authors.AuthorCopy) -> messages.AuthorCopy:
    """A copy as its author may see it: without moderators and their notes."""
    link = parts.config.content.link_to(copy.language, copy.other)
    return messages.AuthorCopy(**copy._asdict(), own_story_id=copy.own, story_id=copy.other, link=link)
