"""Complaints over HTTP; `query.complaints` receives them and makes their evidence."""

from neardup.http.problems import INVALID, TOO_LARGE, ProblemType, Refused
from neardup.ledger import complaints
from neardup.ledger.complaints import Closed, Complaint
from neardup.query.complaints import ComplaintRefused, GivenComplaint, Why, receive
from neardup.records import format_time
from neardup.serve import rights_messages
from neardup.serve.messages import parse_story_id
from neardup.serve.rights_messages import (
    ComplaintAnswerRequest,
    ComplaintEvidence,
    ComplaintRequest,
    ComplaintsAnswer,
    ComplaintsQuery,
    ComplaintStep,
    ForgottenComplainant,
)
from neardup.serve.service import Deadline, ServiceParts
from neardup.serve.stories import NO_STORY, UNKNOWN_STORY

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


async def complain(parts: ServiceParts, request: ComplaintRequest, deadline: Deadline) -> rights_messages.Complaint:
    """POST /v1/complaints.  Raises Refused."""
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


async def complaints_of(parts: ServiceParts, query: ComplaintsQuery, _: Deadline) -> ComplaintsAnswer:
    """GET /v1/complaints."""
    listed = await parts.reader.do(
        complaints.list_complaints, closed=query.closed, limit=query.limit, offset=query.first
    )
    total = await parts.reader.do(complaints.count, closed=query.closed)
    return ComplaintsAnswer(total=total, complaints=list(map(_make_complaint, listed)))


async def complaint_of(parts: ServiceParts, number: int, _: Deadline) -> rights_messages.Complaint:
    """GET /v1/complaints/{number}.  Raises Refused if there is none."""
    found = await parts.reader.do(complaints.read_complaint, number)
    if found is None:
        raise _refuse_unknown_complaint(number)
    return _make_complaint(found)


async def answer_complaint(
    parts: ServiceParts, number: int, request: ComplaintAnswerRequest, deadline: Deadline
) -> rights_messages.Complaint:
    """POST /v1/complaints/{number}/answers.  Raises Refused if there is no such complaint, or it is closed."""
    await complaint_of(parts, number, deadline)
    try:
        await parts.complaints.write(complaints.log_answer, number, request.by, None, request.text)
    except Closed as error:
        raise Refused(CLOSED_COMPLAINT, str(error)) from None
    return await complaint_of(parts, number, deadline)


async def forget_complainant(parts: ServiceParts, number: int, _: Deadline) -> ForgottenComplainant:
    """DELETE /v1/complaints/{number}/complainant.  Raises Refused if there is no such complaint."""
    if not await parts.complaints.write(complaints.forget_complainant, number, None):
        raise _refuse_unknown_complaint(number)
    return ForgottenComplainant(number=number)


def _refuse_unknown_complaint(number: int) -> Refused:
    return Refused(UNKNOWN_COMPLAINT, f"there is no complaint {number}")


def _make_complaint(found: Complaint) -> rights_messages.Complaint:
    return rights_messages.Complaint(
        number=found.number,
        story_id=found.shown,
        original_id=found.original_shown,
        has_original_text=found.has_text,
        statement=found.statement,
        received_at=format_time(found.received_at),
        due_at=format_time(found.due_at),
        closed_at=format_time(found.closed_at),
        outcome=found.outcome,
        evidence=found.evidence and ComplaintEvidence.model_validate(found.evidence),
        log=[ComplaintStep(step=logged.step, at=format_time(logged.at), note=logged.note) for logged in found.log],
    )
