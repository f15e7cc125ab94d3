"""The page of permissions: who may use whose text, entered and revoked by moderators.

To enter or revoke one for a story, a moderator must be allowed to decide cases in its language; for a serial, or for
all texts of an author or of a catalogue, in all languages of the undecided flags on them, whether open or permitted.
"""

import sqlite3
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from neardup.ledger import now_ms, permissions, story_rows
from neardup.ledger.permissions import Grant, PermissionFilter, PermissionRefused
from neardup.moderation.desk.addresses import read_number, read_page_number
from neardup.moderation.desk.moderators import Moderator, Right
from neardup.moderation.desk.pages import render_page, require_moderator, require_sender
from neardup.moderation.desk.parts import FORM, get_desk
from neardup.moderation.interface import translate_later
from neardup.moderation.permissions import FIELDS, WrongField, parse_grant
from neardup.records import Language, show_id
from neardup.source.parse import parse_id

PAGE_SIZE = 50
STATES = {
    "in_force": translate_later("in force"),
    "later": translate_later("not yet in force"),
    "ended": translate_later("ended"),
    "revoked": translate_later("revoked"),
}


def make_prefilled_query(flag: Mapping[str, Any]) -> str:
    """The query of the page whose form permits the copy of a flag, a row of the view `pairs`; "" if no one can."""
    if flag["catalogue"] is not None:  # permitted to everyone: its works are free
        return urlencode({"catalogue": flag["catalogue"]})
    by, to = flag["matched_author_id"], flag["story_author_id"]
    if by is None or by == to:
        return ""
    given = {"granted_by": by, "story_id": show_id(flag["matched_id"], flag["matched_name"]), "granted_to": to}
    return urlencode({name: value for name, value in given.items() if value is not None})


async def show(request: web.Request) -> web.Response:
    """GET /permissions: author=, id= and page= select what is listed; the fields of the form may be given, too."""
    return await _render_page(request, request.query)


async def enter(request: web.Request) -> web.StreamResponse:
    """POST /permissions: the fields FIELDS; a form that is refused comes back with its input."""
    moderator, form = require_sender(request), request[FORM]
    try:
        entered = await get_desk(request).ledger.write(_enter, parse_grant(form), moderator)
    except (PermissionRefused, WrongField) as error:
        return await _render_page(request, form, refused=str(error))
    raise web.HTTPSeeOther(f"/permissions?id={entered}")


async def revoke(request: web.Request) -> web.StreamResponse:
    """POST /permissions/ID/revoke."""
    moderator, number = require_moderator(request), read_number(request.match_info, "permission") or 0
    try:
        await get_desk(request).ledger.write(_revoke, number, moderator)
    except PermissionRefused as error:
        return await _render_page(request, {}, refused=str(error))
    raise web.HTTPSeeOther(f"/permissions?id={number}")


def _enter(db: sqlite3.Connection, grant: Grant, moderator: Moderator) -> int:
    moderator.require(_read_languages(db, grant))
    return permissions.enter(db, grant, moderator.name)


def _revoke(db: sqlite3.Connection, number: int, moderator: Moderator) -> None:
    found = permissions.read(db, number, now_ms())
    if found is not None:
        story = None if found["story_id"] is None else parse_id(str(found["story_id"]))
        moderator.require(_read_languages(db, Grant(found["granted_by"], story, found["catalogue"])))
    permissions.revoke(db, number, moderator.name)


def _read_languages(db: sqlite3.Connection, grant: Grant) -> set[Language]:
    if grant.story_id is not None:
        return {Language(row["language"]) for row in story_rows.describe(db, [grant.story_id]).values()}
    return permissions.read_languages(db, grant)


async def _render_page(request: web.Request, fields: Mapping[str, str], refused: str | None = None) -> web.Response:
    moderator, ledger = require_moderator(request), get_desk(request).ledger
    author, number = request.query.get("author") or None, read_number(request.query, "id")
    chosen, page_number = PermissionFilter(number, author), read_page_number(request.query)
    await ledger.refresh_cases()  # which also begins and ends permissions that are due
    rows, total = await ledger.read(_list_rows, chosen, (page_number - 1) * PAGE_SIZE)
    return render_page(
        request,
        "permissions.html.j2",
        200 if refused is None else 400,
        rows=rows,
        page_number=page_number,
        last=-(-total // PAGE_SIZE),
        states=STATES,
        address=f"/permissions?{urlencode({'author': author})}&" if author else "/permissions?",
        is_whole=chosen == PermissionFilter(),
        fields={name: fields.get(name, "") for name in FIELDS},
        refused=refused,
        may_decide=Right.DECIDE in moderator.rights,
    )


def _list_rows(db: sqlite3.Connection, chosen: PermissionFilter, first: int) -> tuple[list[dict[str, Any]], int]:
    now = now_ms()
    rows = permissions.select(db, chosen, now, limit=PAGE_SIZE, offset=first)
    return rows, permissions.count(db, chosen, now)
