"""What an HTTP request brings, and the failures that it ends in, answered as application/problem+json by RFC 9457.

A handler raises Refused; `answer_or_problem` turns that, and every other failure, into an answer.  The types are
stable: a client may decide by them.  Those that only one server knows stand beside what it refuses by them.

A request brings a bearer token (RFC 6750), a body in JSON, the name of the host, and the address it came from.
Whatever is missing or wrong is refused; a refusal never quotes the content of a story.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple, TypeVar

from aiohttp import ClientError, web
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from neardup.errors import NeardupError, Transient
from neardup.http.tokens import Holder, is_loopback, match_token
from neardup.telemetry.log import log

CONTENT_TYPE = "application/problem+json"
RETRY_SECONDS = "1"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ProblemType(Struct, frozen=True):
    """A kind of failure; one that may pass is worth another attempt after RETRY_SECONDS."""

    name: str
    status: int
    title: str
    may_pass: bool = False

    @property
    def uri(self) -> str:
        """The `type` of its problems; RFC 9457 gives one to what says no more than its status."""
        return f"urn:neardup:problem:{self.name}" if self.name else "about:blank"

    @property
    def headers(self) -> dict[str, str]:
        """What the headers of an answer say of it."""
        headers = {"Retry-After": RETRY_SECONDS} if self.may_pass else {}
        if self is UNAUTHENTICATED:
            headers["WWW-Authenticate"] = 'Bearer realm="neardup"'
        if self is FORBIDDEN:
            headers["WWW-Authenticate"] = 'Bearer realm="neardup", error="insufficient_scope"'
        return headers


NO_HTTP = ProblemType("", 400, HTTPStatus.BAD_REQUEST.phrase)
MALFORMED = ProblemType("malformed", 400, "The body is not JSON")
UNAUTHENTICATED = ProblemType("unauthenticated", 401, "The request has no valid token")
FORBIDDEN = ProblemType("forbidden", 403, "The token does not have this right")
NOT_FOUND = ProblemType("not-found", 404, "There is nothing at this address")
METHOD_NOT_ALLOWED = ProblemType("method-not-allowed", 405, "This address has no such method")
SLOW = ProblemType("slow", 408, "The body did not arrive in time", may_pass=True)
TOO_LARGE = ProblemType("too-large", 413, "The body is too large")
NOT_JSON = ProblemType("unsupported-media-type", 415, "The Content-Type is not application/json")
OTHER_HOST = ProblemType("other-host", 421, "Without tokens, only this machine is answered")
INVALID = ProblemType("invalid", 422, "The request does not fit the schema")
FAILED = ProblemType("failed", 500, "The service failed")
UNAVAILABLE = ProblemType("unavailable", 503, "The service cannot answer now", may_pass=True)
TYPE_OF_STATUS = {400: INVALID, 404: NOT_FOUND, 405: METHOD_NOT_ALLOWED, 413: TOO_LARGE}  # of what aiohttp raises


class WrongMember(NamedTuple):
    """A member of a request that is wrong: its place, "" for the whole, and what is wrong with it."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class Refused(NeardupError):
    """Ends a request with a problem.

    `reason` says why it is refused, where its type does not, `complaint` which complaint is repeated.
    """

    def __init__(
        self,
        problem: ProblemType,
        detail: str,
        *,
        reason: str | None = None,
        errors: tuple[WrongMember, ...] = (),
        complaint: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = problem
        self.reason = reason
        self.errors = errors
        self.complaint = complaint

    @property
    def members(self) -> dict[str, Any]:
        """The members that RFC 9457 gives every problem."""
        kind = self.problem
        return {"type": kind.uri, "title": kind.title, "status": kind.status, "detail": str(self)}


async def answer_or_problem(
    request: web.Request,
    handler: Handler,
    body_of: Callable[[Refused], str],
    problem_of: Mapping[type[NeardupError], ProblemType],
) -> web.StreamResponse:
    """The answer of a handler, or the problem that it ends in, whose JSON `body_of` makes.

    `problem_of` has the problems of the server's own errors, of which the first that fits holds; one that only an
    operator can mend is logged, and is that of NeardupError.  The content of requests and stories is never logged.
    """
    try:
        return await handler(request)
    except Refused as error:
        refused = error
    except web.HTTPException as error:
        refused = _make_refusal(error)
        response = make_response(refused, body_of)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except Transient as error:
        refused = Refused(UNAVAILABLE, str(error))
    except NeardupError as error:
        found = next(known for known in problem_of if isinstance(error, known))
        if found is NeardupError:
            log.error("a request failed", why=str(error))
        refused = Refused(problem_of[found], str(error))
    except Exception as error:  # noqa: BLE001 - its message may quote a story
        log_failure(request, error)
        refused = Refused(FAILED, "an internal error occurred; the log has the details")
    return make_response(refused, body_of)


async def answer_exception(_: web.Request, response: web.StreamResponse) -> None:
    """Make a problem of an HTTPException that no middleware saw: a signal, sent before the answer."""
    if isinstance(response, web.HTTPException) and response.status >= HTTPStatus.BAD_REQUEST:
        body = json.dumps(_make_refusal(response).members).encode()
        response.body = body
        response.headers.update({"Content-Type": CONTENT_TYPE, "Content-Length": str(len(body))})


def answer_no_http(
    _: object, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
) -> web.StreamResponse:
    """The problem of what is no HTTP request, such as TLS; in place of `web.RequestHandler.handle_error`."""
    if request.writer.output_size > 0:
        raise ConnectionError("a part of an answer was sent before")
    detail = "what was sent is no HTTP/1.1 request" if exc is not None and status < 500 else "the answer failed"
    kind = ProblemType("", status, HTTPStatus(status).phrase)
    response = make_response(Refused(kind, detail), lambda refused: json.dumps(refused.members))
    response.force_close()
    return response


def _make_refusal(error: web.HTTPException) -> Refused:
    kind = TYPE_OF_STATUS.get(error.status) or ProblemType("", error.status, HTTPStatus(error.status).phrase)
    return Refused(kind, kind.title if kind.status == error.status else error.reason)


def make_response(refused: Refused, body_of: Callable[[Refused], str]) -> web.Response:
    """The answer to a request that is refused."""
    kind = refused.problem
    return web.Response(status=kind.status, text=body_of(refused), content_type=CONTENT_TYPE, headers=kind.headers)


def find_route(request: web.Request) -> str:
    """The path of the route that a request takes, with its placeholders; "unknown" if there is none."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"


def log_failure(request: web.Request, error: Exception) -> None:
    """Log that a request failed, and where: the message of the error may quote a story, and is left out."""
    log.error(
        "a request failed", route=find_route(request), error=type(error).__name__, where=_format_innermost_frames(error)
    )


def _format_innermost_frames(error: BaseException) -> str:
    frames, frame = list[str](), error.__traceback__
    while frame is not None:
        frames.append(f"{frame.tb_frame.f_code.co_filename.rpartition('/daemon/')[2]}:{frame.tb_lineno}")
        frame = frame.tb_next
    return " ".join(frames[-6:])


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
