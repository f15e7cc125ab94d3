"""What every request passes: its id, its metrics, its log line, and failures as problems."""

import re
import time
import uuid
from collections.abc import Awaitable, Callable

from aiohttp import web
from structlog.contextvars import bound_contextvars

from neardup.config.address import is_loopback, named_host
from neardup.errors import NeardupError, Transient
from neardup.problem_types import FAILED, UNAVAILABLE
from neardup.serve.problems import OTHER_HOST, Refused, of_http_error, response_of
from neardup.serve.service import SERVICE
from neardup.telemetry.http import innermost_frames, route_of
from neardup.telemetry.log import log
from neardup.telemetry.metrics import HTTP_REQUESTS, HTTP_SECONDS

REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "neardup",
}
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE"}
TOKEN_NAME = web.RequestKey("token_name", str)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, its own or a new one, and count and log its answer."""
    given = request.headers.get("X-Request-ID", "")
    request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    route, method = route_of(request), request.method if request.method in METHODS else "other"
    began = time.perf_counter()
    with bound_contextvars(request=request_id):
        response = await _answer(request, handler, request_id)
        seconds = time.perf_counter() - began
        if route.startswith("/v1/"):
            log.info(
                "answered",
                method=method,
                route=route,
                status=response.status,
                took_ms=round(1000 * seconds, 1),
                token=request.get(TOKEN_NAME),
            )
    HTTP_REQUESTS.labels(method, route, str(response.status)).inc()
    HTTP_SECONDS.labels(method, route).observe(seconds)
    response.headers["X-Request-ID"] = request_id
    response.headers.update(HEADERS)
    return response


async def _answer(request: web.Request, handler: Handler, request_id: str) -> web.StreamResponse:
    """The answer, or the problem that prevents it.  The content of requests and stories is never logged."""
    try:
        _refuse_other_hosts(request)
        return await handler(request)
    except Refused as refused:
        return response_of(refused, request_id)
    except web.HTTPException as error:
        response = response_of(of_http_error(error), request_id)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except NeardupError as error:
        if not isinstance(error, Transient):
            log.error("a request failed", why=str(error))
        return response_of(Refused(UNAVAILABLE, str(error)), request_id)
    except Exception as error:  # noqa: BLE001 - its message may quote a story
        log.error("a request failed", error=type(error).__name__, where=innermost_frames(error))
        return response_of(Refused(FAILED, "an internal error occurred; the log has the details"), request_id)


def _refuse_other_hosts(request: web.Request) -> None:
    """Reject host names of other sites that resolve to this machine (DNS rebinding).  Raises Refused."""
    if request.app[SERVICE].tokens is None and not is_loopback(named_host(request.host)):
        raise Refused(OTHER_HOST, f"{request.host} is not a name of this machine alone")
