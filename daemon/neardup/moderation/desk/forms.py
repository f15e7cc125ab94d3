"""What the forms that give a verdict have in common: reading their fields, and the page of a conflict."""

from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from neardup.errors import Conflict
from neardup.ledger.cases import CaseHeld
from neardup.moderation.desk.access import moderator_of
from neardup.moderation.desk.deciding import Given
from neardup.moderation.desk.decision import OFFERED
from neardup.moderation.desk.desk import FORM
from neardup.moderation.desk.pages import page, send_again_page
from neardup.moderation.desk.user_input import MAX_NOTE_LENGTH, clean_note
from neardup.moderation.interface import gettext, marked, number
from neardup.records import Verdict

EXCEPTED = "except-"  # the fields of pairs that are left out of a verdict begin so


def _verdict_in(form: dict[str, str]) -> Verdict:
    for verdict in OFFERED:
        if verdict == form.get("verdict"):
            return verdict
    raise web.HTTPBadRequest(reason=marked("Unknown verdict"))


def query_in(request: web.Request) -> dict[str, str]:
    """The query string of the queue, which the form has in its field `query`."""
    return dict(parse_qsl(request[FORM].get("query", "").removeprefix("?"), max_num_fields=32))


def given_in(request: web.Request, verdict: Verdict | None = None) -> Given | web.Response:
    """The verdict in a form with the fields `verdict`, `note` and `seen`, or a page that says why it is not taken.

    The page keeps the input.  Raises HTTPBadRequest for an unknown verdict.
    """
    form, moderator = request[FORM], moderator_of(request)
    given_verdict = verdict or _verdict_in(form)
    note = clean_note(form.get("note", ""))
    if len(note) > MAX_NOTE_LENGTH:
        limit = gettext("The limit is %(n)s characters.") % {"n": number(MAX_NOTE_LENGTH)}
        return send_again_page(request, 400, marked("The note is too long"), limit)
    if moderator is None:
        message = marked("The desk no longer knows your name. Enter it at /name in another tab, then send this again.")
        return send_again_page(request, 403, marked("Who are you?"), message)
    return Given(given_verdict, note, moderator, form.get("seen", ""))


def conflict_page(request: web.Request, error: Conflict, back: str, form: dict[str, Any] | None = None) -> web.Response:
    """The page of a conflict, with a way back; it keeps the input, in a form for the state that is current now."""
    fields = form and {"query": "", "action": request.path} | form
    kept = {name: value for name, value in (form or {}).items() if name.startswith(EXCEPTED)}
    return page(
        request,
        "conflict.html.j2",
        409,
        is_held=isinstance(error, CaseHeld),
        message=str(error),
        form=fields,
        back=back,
        kept=kept,
    )
