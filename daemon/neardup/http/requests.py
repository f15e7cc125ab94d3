"""What a request brings: a bearer token (RFC 6750), a body in JSON, the name of the host, and the address it came from.

Whatever is missing or wrong is refused with a problem; a refusal never quotes the content of a story.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeVar

from aiohttp import ClientError, web
from pydantic import BaseModel, ValidationError

from neardup.http.problems import (
    INVALID,
    MALFORMED,
    NOT_JSON,
    OTHER_HOST,
    SLOW,
    TOO_LARGE,
    UNAUTHENTICATED,
    Refused,
    WrongMember,
)
from neardup.http.tokens import Holder, is_loopback, match_token

BODY_SECONDS = 30.0  # for the body of a request, where nothing else limits it
SCHEME = "Bearer "
HOST_HEADER = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d+)?")
OF_PROXIES = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")

H = TypeVar("H", bound=Holder)
M = TypeVar("M", bound=BaseModel)


def read_bearer_token(request: web.Request) -> str:
    """The token that a request brings; "" if it brings none."""
    given = request.headers.get("Authorization", "")
    return given.removeprefix(SCHEME) if given.startswith(SCHEME) else ""


def find_holder(request: web.Request, holders: Sequence[H]) -> H:
    """The one of these holders whose token a request brings.  Raises Refused."""
    holder = match_token(holders, read_bearer_token(request))
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


async def read_body(request: web.Request, seconds: float) -> bytes:
    """The body of a request.

    Raises Refused if it has not arrived after so many seconds, or if the client leaves it unfinished, or encodes it
    wrongly.
    """
    try:
        async with asyncio.timeout(max(seconds, 0)):
            return await request.read()
    except TimeoutError:
        raise Refused(SLOW, "the body did not arrive in time") from None
    except (OSError, ClientError, web.RequestPayloadError):
        raise Refused(MALFORMED, "the body ends early, or is not encoded as the headers say") from None


def parse_json(model: type[M], body: bytes) -> M:
    """A body as a model.  Raises Refused, which names every wrong member."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        wrong = list_wrong_members(error)
        malformed = [detail["msg"] for detail in error.errors(include_url=False) if detail["type"] == "json_invalid"]
    if malformed:
        raise Refused(MALFORMED, malformed[0])
    raise Refused(INVALID, "; ".join(map(str, wrong)), errors=wrong)


def list_wrong_members(error: ValidationError) -> tuple[WrongMember, ...]:
    """The members that are wrong by an error of a model; none of their values is shown."""
    return tuple(map(_make_wrong_member, error.errors(include_url=False, include_input=False, include_context=False)))


def _make_wrong_member(detail: Any) -> WrongMember:
    what = "unknown member" if detail["type"] == "extra_forbidden" else str(detail["msg"]).removeprefix("Value error, ")
    return WrongMember(".".join(map(str, detail["loc"])), what)


def refuse_other_machines(request: web.Request) -> None:
    """Refuse what did not begin on this machine, by its headers.  Raises Refused.

    A server without tokens is for this machine alone.  The Host header has the names of other sites that resolve to it
    (DNS rebinding); a proxy on this machine, which may send another Host, says that it is one.
    """
    host = HOST_HEADER.fullmatch(request.host)
    if not (host and is_loopback(host[1])):
        raise Refused(OTHER_HOST, f"{request.host} is not a name of this machine alone")
    if any(name in request.headers for name in OF_PROXIES):
        raise Refused(OTHER_HOST, "a proxy forwards this request from elsewhere, which needs a token")


def find_client_address(request: web.Request, proxies: Iterable[str]) -> str:
    """The address of the client: that of the peer, or what these proxies, as networks, appended to X-Forwarded-For.

    What any other one appended is its own invention.
    """
    networks = [ip_network(proxy) for proxy in proxies]
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
    hops = [request.remote or "", *reversed([hop.strip() for hop in forwarded.split(",") if hop.strip()])]
    return next((hop for hop in hops if not _is_among(networks, hop)), hops[-1])


def _is_among(networks: Sequence[IPv4Network | IPv6Network], address: str) -> bool:
    try:
        known = ip_address(address)
    except ValueError:
        return False
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return any((mapped or known) in network for network in networks)
