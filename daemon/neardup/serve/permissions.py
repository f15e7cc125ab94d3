"""Permissions over HTTP: they are entered, listed and revoked; `ledger.permissions` says what they mean."""

from collections.abc import Mapping
from typing import Any

from neardup.http.problems import ProblemType, Refused
from neardup.ledger import now_ms, permissions
from neardup.ledger.permissions import Grant, PermissionFilter, PermissionRefused, Refusal
from neardup.records import format_time
from neardup.serve import rights_messages
from neardup.serve.messages import parse_story_id
from neardup.serve.rights_messages import PermissionRequest, PermissionsAnswer, PermissionsQuery
from neardup.serve.service import Deadline, ServiceParts
from neardup.serve.stories import UNKNOWN_STORY
from neardup.source.parse import make_printable, parse_time

UNKNOWN_PERMISSION = ProblemType("unknown-permission", 404, "There is no such permission")
NOT_ENTERED = ProblemType("permission-refused", 409, "The permission is not entered, or not revoked")


async def enter_permission(
    parts: ServiceParts, request: PermissionRequest, caller: str, _: Deadline
) -> rights_messages.Permission:
    """POST /v1/permissions.  Raises Refused."""
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
        permission_id = await parts.submissions.permit(grant, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_STORY if error.reason is Refusal.UNKNOWN_STORY else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await _read_permission(parts, permission_id)


async def revoke_permission(parts: ServiceParts, number: int, caller: str, _: Deadline) -> rights_messages.Permission:
    """DELETE /v1/permissions/{number}.  Raises Refused."""
    try:
        await parts.submissions.revoke(number, caller)
    except PermissionRefused as error:
        problem = UNKNOWN_PERMISSION if error.reason is Refusal.UNKNOWN_PERMISSION else NOT_ENTERED
        raise Refused(problem, str(error), reason=error.reason) from None
    return await _read_permission(parts, number)


async def permissions_of(parts: ServiceParts, query: PermissionsQuery, _: Deadline) -> PermissionsAnswer:
    """GET /v1/permissions."""
    story = None if query.story_id is None else parse_story_id(query.story_id).number
    chosen, now = PermissionFilter(None, query.author_id or None, story, query.catalogue, not query.ended), now_ms()
    rows = await parts.reader.do(permissions.select, chosen, now, limit=query.limit, offset=query.first)
    total = await parts.reader.do(permissions.count, chosen, now)
    return PermissionsAnswer(total=total, permissions=list(map(_make_permission, rows)))


async def permission_of(parts: ServiceParts, number: int, _: Deadline) -> rights_messages.Permission:
    """GET /v1/permissions/{number}.  Raises Refused if there is none."""
    return await _read_permission(parts, number)


async def _read_permission(parts: ServiceParts, number: int) -> rights_messages.Permission:
    row = await parts.reader.do(permissions.read, number, now_ms())
    if row is None:
        raise Refused(UNKNOWN_PERMISSION, f"there is no permission {number}")
    return _make_permission(row)


def _make_permission(row: Mapping[str, Any]) -> rights_messages.Permission:
    times = {name: format_time(row[name]) for name in ("since", "until", "entered_at", "revoked_at")}
    return rights_messages.Permission.model_validate(dict(row) | times)
