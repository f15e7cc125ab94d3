"""The pages of complaints: the list with its deadlines, one complaint with its log, and the form on a story's page.

What a moderator does with a complaint is one form: an action, and the words that belong to it.
"""

import sqlite3

from aiohttp import web

from neardup.ledger import complaints, now_ms
from neardup.ledger.complaints import ANSWERS, BY_HAND, NOTICES, Closed, Complaint, Step
from neardup.moderation.desk.addresses import read_number, read_page_number, read_story_id
from neardup.moderation.desk.moderators import Moderator, Right, clean_name, clean_note
from neardup.moderation.desk.pages import (
    SendAgain,
    read_note,
    render_page,
    require_moderator,
    require_sender,
)
from neardup.moderation.desk.parts import FORM, Desk, get_desk
from neardup.moderation.interface import translate_later
from neardup.query.complaints import ComplaintRefused, GivenComplaint, make_evidence, receive
from neardup.records import Language
from neardup.source.parse import parse_id
from neardup.telemetry.log import log

PAGE_SIZE = 50
REFUSED = translate_later("The complaint is not recorded")
LABELS = {  # of the form that records a complaint
    "complainant": translate_later("Name of the complainant"),
    "contact": translate_later("Contact"),
    "copied": translate_later("Id of the story that was copied, if it is on record"),
    "copied_text": translate_later(
        "Or its text, up to 4,500 characters; a longer one comes by the service or from a file"
    ),
}
EVIDENCE, FORGET, REOPEN = "evidence", "forget", "reopen"
ACTIONS = (EVIDENCE, *map(str, NOTICES), *ANSWERS, *BY_HAND, REOPEN, FORGET)
NEED_WORDS = (*ANSWERS, *BY_HAND, REOPEN)  # the actions that say something


async def list_all(request: web.Request) -> web.Response:
    """GET /complaints: the open complaints, the next deadline first; with closed=1 the closed ones."""
    require_moderator(request)
    closed, page_number = "closed" in request.query, read_page_number(request.query)
    first = (page_number - 1) * PAGE_SIZE
    read = get_desk(request).ledger.read
    listed = await read(complaints.list_complaints, closed=closed, limit=PAGE_SIZE, offset=first)
    totals = [await read(complaints.count, closed=which) for which in (False, True)]
    return render_page(
        request,
        "complaints.html.j2",
        complaints=listed,
        closed=closed,
        totals=totals,
        now=now_ms(),
        page_number=page_number,
        last=-(-totals[closed] // PAGE_SIZE),
    )


async def show(request: web.Request) -> web.Response:
    """GET /complaint/NUMBER."""
    moderator, complaint = require_moderator(request), await _read_complaint(request)
    may_decide = _may_decide(moderator, complaint)
    text = await get_desk(request).ledger.read(complaints.read_original_text, complaint.number)
    return render_page(
        request, "complaint.html.j2", complaint=complaint, text=text, now=now_ms(), may_decide=may_decide
    )


def _may_decide(moderator: Moderator, complaint: Complaint) -> bool:
    if complaint.language is None:
        return Right.DECIDE in moderator.rights
    return moderator.may_decide(Language(complaint.language))


async def _read_complaint(request: web.Request) -> Complaint:
    """The complaint in the path.  Raises HTTPNotFound."""
    found = await get_desk(request).ledger.read(
        complaints.read_complaint, read_number(request.match_info, "number") or 0
    )
    if found is None:
        raise web.HTTPNotFound(reason=translate_later("There is no complaint with this number"))
    return found


async def record(request: web.Request) -> web.StreamResponse:
    """POST /story/ID/complaint: fields complainant, contact, note, copied (an id or none), copied_text."""
    desk, form, moderator = get_desk(request), request[FORM], require_sender(request)
    moderator.require([])
    original = form.get("copied", "").strip()
    try:
        original_id = parse_id(original) if original else None
    except ValueError as error:
        raise SendAgain(400, REFUSED, str(error), LABELS) from None
    given = GivenComplaint(
        read_story_id(request),
        clean_name(form.get("complainant", "")),
        clean_note(form.get("contact", "")),
        clean_note(form.get("note", "")),
        original_id,
        form.get("copied_text", "").strip() or None,
    )
    try:
        complaint = await receive(desk.complaints, given, moderator.name)
    except ComplaintRefused as error:
        raise SendAgain(400, REFUSED, f"{error}.".capitalize(), LABELS) from None
    _announce(desk, complaint.number, Step.RECEIVED)
    raise web.HTTPSeeOther(f"/complaint/{complaint.number}")


async def act(request: web.Request) -> web.StreamResponse:
    """POST /complaint/NUMBER: fields `action` and `note`."""
    desk, form, complaint = get_desk(request), request[FORM], await _read_complaint(request)
    action, note = form.get("action", ""), read_note(form.get("note", ""))
    if action not in ACTIONS:
        raise web.HTTPBadRequest(reason=translate_later("Unknown action"))
    moderator = require_sender(request)
    if action in NEED_WORDS and not note:
        raise SendAgain(400, translate_later("Words are needed"), translate_later("Say what was answered, or why."))
    try:
        await perform(desk, complaint, action, note, moderator)
    except Closed as error:
        raise SendAgain(409, translate_later("The complaint is closed"), f"{error}.".capitalize()) from None
    raise web.HTTPSeeOther(f"/complaint/{complaint.number}")


async def perform(desk: Desk, complaint: Complaint, action: str, note: str, moderator: Moderator) -> None:
    """Do one of ACTIONS with a complaint.  Raises Closed, and NotPermitted."""
    moderator.require([] if complaint.language is None else [Language(complaint.language)])
    if action == EVIDENCE:
        await make_evidence(desk.complaints, complaint.number)
    else:
        await desk.ledger.write(_log_action, complaint.number, action, moderator.name, note)
    _announce(desk, complaint.number, action)


def _announce(desk: Desk, complaint: int, step: str) -> None:
    """Log what was done, without a word of the people in it, and have it posted soon."""
    log.info("a step of a complaint was stored", complaint=complaint, step=step)
    desk.wake_posting.set()


def _log_action(db: sqlite3.Connection, complaint: int, action: str, by: str, note: str) -> None:
    if action in NOTICES:
        complaints.log_notice(db, complaint, Step(action), by, note)
    elif action in ANSWERS:
        complaints.log_answer(db, complaint, action, by, note)
    elif action in BY_HAND:
        complaints.close(db, complaint, action, by, note)
    elif action == REOPEN:
        complaints.reopen(db, complaint, by, note)
    else:
        complaints.forget_complainant(db, complaint, by)
