"""The failures of a request to the service, answered as application/problem+json by RFC 9457."""

from aiohttp import web

from neardup.errors import NeardupError
from neardup.http.problems import (
    CONTENT_TYPE,
    FAILED,
    FORBIDDEN,
    INVALID,
    MALFORMED,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    NOT_JSON,
    TOO_LARGE,
    UNAUTHENTICATED,
    UNAVAILABLE,
    ProblemType,
)
from neardup.serve.messages import InvalidMember, Problem

UNKNOWN_STORY = ProblemType("unknown-story", 404, "The story is not on record")
FORGOTTEN = ProblemType("forgotten", 409, "The story was forgotten on request")
OTHER_HOST = ProblemType("other-host", 421, "Without tokens, the service answers to localhost only")
NO_STORY = ProblemType("no-story", 422, "The text or the page yields no story to compare")
BUSY = ProblemType("busy", 429, "Too many requests are waiting", may_pass=True)

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
    body = problem_of(refused, request_id).model_dump_json(exclude_none=True)
    return web.Response(status=kind.status, text=body, content_type=CONTENT_TYPE, headers=kind.headers)


def of_http_error(error: web.HTTPException) -> Refused:
    """What aiohttp refuses by itself, as a problem."""
    known = {kind.status: kind for kind in (NOT_FOUND, METHOD_NOT_ALLOWED, TOO_LARGE)}
    kind = known.get(error.status, MALFORMED if error.status < 500 else FAILED)
    return Refused(kind, kind.title if kind.status == error.status else error.reason)
