"""The failures that HTTP requests end in, answered as application/problem+json by RFC 9457.

A handler raises Refused; `answer_or_problem` turns that, and every other failure, into an answer.  The types are
stable: a client may decide by them.  Those that only one server knows stand beside what it refuses by them.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import Struct

from neardup.errors import NeardupError, Transient
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
