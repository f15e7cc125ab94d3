"""The failures of a request, answered as application/problem+json by RFC 9457.

The types are stable: a client may decide by them.
"""

from dataclasses import dataclass

from aiohttp import web

from neardup.errors import NeardupError
from neardup.serve.answers import InvalidMember, Problem

CONTENT_TYPE = "application/problem+json"
RETRY_SECONDS = "1"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of failure; one that may pass is worth another attempt after RETRY_SECONDS."""

    name: str
    status: int
    title: str
    may_pass: bool = False

    @property
    def uri(self) -> str:
        """The `type` of its problems."""
        return f"urn:neardup:problem:{self.name}"


MALFORMED = ProblemType("malformed", 400, "The body is not JSON")
UNAUTHENTICATED = ProblemType("unauthenticated", 401, "The request has no valid token")
FORBIDDEN = ProblemType("forbidden", 403, "The token does not have this right")
NOT_FOUND = ProblemType("not-found", 404, "There is nothing at this address")
UNKNOWN_STORY = ProblemType("unknown-story", 404, "The story is not on record")
METHOD_NOT_ALLOWED = ProblemType("method-not-allowed", 405, "This address has no such method")
FORGOTTEN = ProblemType("forgotten", 409, "The story was forgotten on request")
TOO_LARGE = ProblemType("too-large", 413, "The body is too large")
NOT_JSON = ProblemType("unsupported-media-type", 415, "The Content-Type is not application/json")
OTHER_HOST = ProblemType("other-host", 421, "Without tokens, the service answers to localhost only")
INVALID = ProblemType("invalid", 422, "The request does not fit the schema")
NO_STORY = ProblemType("no-story", 422, "The text or the page yields no story to compare")
BUSY = ProblemType("busy", 429, "Too many requests are waiting", may_pass=True)
FAILED = ProblemType("failed", 500, "The service failed")
UNAVAILABLE = ProblemType("unavailable", 503, "The service cannot answer now", may_pass=True)

TYPES = (
    MALFORMED,
    UNAUTHENTICATED,
    FORBIDDEN,
    NOT_FOUND,
    UNKNOWN_STORY,
    METHOD_NOT_ALLOWED,
    FORGOTTEN,
    TOO_LARGE,
    NOT_JSON,
    OTHER_HOST,
    INVALID,
    NO_STORY,
    BUSY,
    FAILED,
    UNAVAILABLE,
)


class Refused(NeardupError):
    """Ends a request with a problem."""

    def __init__(
        self, problem: ProblemType, detail: str, *, reason: str | None = None, errors: tuple[InvalidMember, ...] = ()
    ) -> None:
        super().__init__(detail)
        self.problem = problem
        self.reason = reason
        self.errors = errors


def problem_of(refused: Refused, request_id: str | None = None) -> Problem:
    """The body of the answer.  A failure of the service itself fails open: it says nothing about the story."""
    kind = refused.problem
    return Problem(
        type=kind.uri,
        title=kind.title,
        status=kind.status,
        detail=str(refused),
        request_id=request_id,
        fail_open=kind.status in (429, 500, 503),
        reason=refused.reason,
        errors=list(refused.errors),
    )


def response_of(refused: Refused, request_id: str) -> web.Response:
    """The answer to a request that is refused."""
    kind = refused.problem
    headers = {"Retry-After": RETRY_SECONDS} if kind.may_pass else {}
    if kind is UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="neardup"'
    if kind is FORBIDDEN:
        headers["WWW-Authenticate"] = 'Bearer realm="neardup", error="insufficient_scope"'
    body = problem_of(refused, request_id).model_dump_json(exclude_none=True)
    return web.Response(status=kind.status, text=body, content_type=CONTENT_TYPE, headers=headers)


def of_http_error(error: web.HTTPException) -> Refused:
    """What aiohttp refuses by itself, as a problem."""
    known = {kind.status: kind for kind in (NOT_FOUND, METHOD_NOT_ALLOWED, TOO_LARGE)}
    kind = known.get(error.status, MALFORMED if error.status < 500 else FAILED)
    return Refused(kind, kind.title if kind.status == error.status else error.reason)
