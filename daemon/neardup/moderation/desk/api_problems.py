"""The failures of the desk's JSON API, answered as application/problem+json by RFC 9457."""

from aiohttp import web
from aiohttp.typedefs import Handler

from neardup.errors import Conflict, NeardupError, Transient
from neardup.http.problems import (
    CONTENT_TYPE,
    FAILED,
    FORBIDDEN,
    INVALID,
    MALFORMED,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    TOO_LARGE,
    UNAVAILABLE,
    ProblemType,
)
from neardup.http.server import innermost_frames, route_of
from neardup.ledger.cases import CaseHeld
from neardup.moderation.desk.moderators import NotPermitted
from neardup.telemetry.log import log

PREFIX = "/api/"
NO_CASE = ProblemType("no-case", 404, "The story is in no case")
NO_PAIR = ProblemType("no-pair", 404, "The two stories are no translated or retold pair")
NO_DECISION = ProblemType("no-decision", 404, "There is no such decision")
CONFLICT = ProblemType("conflict", 409, "The flags are not as they were read")
HELD = ProblemType("held", 409, "Another moderator holds the case")
OF_STATUS = {kind.status: kind for kind in (NOT_FOUND, METHOD_NOT_ALLOWED, TOO_LARGE)}


class Refused(NeardupError):
    """Ends a request with a problem."""

    def __init__(self, kind: ProblemType, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def is_of_api(request: web.Request) -> bool:
    return request.path.startswith(PREFIX)


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure of the API into a problem.  The content of requests and stories is never logged."""
    if not is_of_api(request):
        return await handler(request)
    try:
        return await handler(request)
    except web.HTTPException as error:
        response = _response(_of_http_error(error))
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except NeardupError as error:
        return _response(_refused(error))
    except Exception as error:  # noqa: BLE001 - its message may quote a story
        log.error("a request failed", page=route_of(request), error=type(error).__name__, where=innermost_frames(error))
        return _response(Refused(FAILED, "an internal error occurred; the log has the details"))


def _refused(error: NeardupError) -> Refused:
    match error:
        case Refused():
            return error
        case CaseHeld():
            return Refused(HELD, str(error))
        case Conflict():
            return Refused(CONFLICT, str(error))
        case NotPermitted():
            return Refused(FORBIDDEN, str(error))
        case Transient():
            return Refused(UNAVAILABLE, str(error))
    log.error("a request failed", why=str(error))
    return Refused(FAILED, str(error))


def _of_http_error(error: web.HTTPException) -> Refused:
    """What aiohttp, or a function of the pages, refuses."""
    if error.status == web.HTTPBadRequest.status_code:
        return Refused(INVALID, error.reason)
    kind = OF_STATUS.get(error.status, MALFORMED if error.status < 500 else FAILED)
    return Refused(kind, kind.title if kind.status == error.status else error.reason)


def _response(refused: Refused) -> web.Response:
    kind = refused.kind
    body = {"type": kind.uri, "title": kind.title, "status": kind.status, "detail": str(refused)}
    return web.json_response(body, status=kind.status, content_type=CONTENT_TYPE, headers=kind.headers)
