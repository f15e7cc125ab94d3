"""What a request brings: a bearer token (RFC 6750), a body in JSON, the name of the host, and the address it came from.

Whatever is missing or wrong is refused with a problem; a refusal never quotes the content of a story.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from neardup.config.address import is_loopback, named_host
from neardup.http.problems import INVALID, MALFORMED, NOT_JSON, TOO_LARGE, UNAUTHENTICATED, Refused, WrongMember
from neardup.http.tokens import Holder, find

SCHEME = "Bearer "

H = TypeVar("H", bound=Holder)
M = TypeVar("M", bound=BaseModel)


def holder_of_token(request: web.Request, holders: Sequence[H]) -> H:
    """The one of these holders whose token a request brings.  Raises Refused."""
    given = request.headers.get("Authorization", "")
    holder = find(holders, given.removeprefix(SCHEME)) if given.startswith(SCHEME) else None
    if holder is None:
        raise Refused(UNAUTHENTICATED, "send the header `Authorization: Bearer TOKEN` with a valid token")
    return holder


def expect_json(request: web.Request) -> None:
    """Refuse a request whose headers say that its body is too large, or is not JSON.  Raises Refused."""
    if request.content_type != "application/json":
        raise Refused(NOT_JSON, "send the header `Content-Type: application/json`")
    most = request.client_max_size
    if (request.content_length or 0) > most:
        raise Refused(TOO_LARGE, f"a body has at most {most:,} bytes")


def parse_json(model: type[M], body: bytes) -> M:
    """A body as a model.  Raises Refused, which names every wrong member."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
    if any(detail["type"] == "json_invalid" for detail in details):
        raise Refused(MALFORMED, details[0]["msg"])
    wrong = tuple(map(_wrong_member, details))
    named = (f"{member.where}: {member.what}" if member.where else member.what for member in wrong)
    raise Refused(INVALID, "; ".join(named), errors=wrong)


def _wrong_member(detail: Any) -> WrongMember:
    what = "unknown member" if detail["type"] == "extra_forbidden" else str(detail["msg"]).removeprefix("Value error, ")
    return WrongMember(".".join(map(str, detail["loc"])), what)


def names_this_machine(request: web.Request) -> bool:
    """Whether the Host header is a name of this machine alone.

    A server for this machine refuses the names of other sites that resolve to it (DNS rebinding).
    """
    return is_loopback(named_host(request.host))


def client_address(request: web.Request) -> str:
    """The address of the client: that of the peer, or what a proxy on this machine appended to X-Forwarded-For."""
    peer = request.remote or ""
    forwarded = request.headers.getall("X-Forwarded-For", [])
    return forwarded[-1].rpartition(",")[2].strip() if forwarded and is_loopback(peer) else peer
