"""What every request passes: its id, its metrics, its log line, and failures as problems."""

import asyncio
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError
from structlog.contextvars import bound_contextvars

from neardup.app import open_service_parts
from neardup.config import Config
from neardup.config.address import is_loopback, named_host
from neardup.errors import Misuse, NeardupError, Transient
from neardup.http.problems import (
    FAILED,
    FORBIDDEN,
    INVALID,
    MALFORMED,
    NOT_JSON,
    TOO_LARGE,
    UNAUTHENTICATED,
    UNAVAILABLE,
)
from neardup.http.server import innermost_frames, listening, route_of
from neardup.serve.messages import Answer, InvalidMember, StoryId, story_id_of
from neardup.serve.openapi import document
from neardup.serve.operations import OPERATIONS, Operation
from neardup.serve.problems import OTHER_HOST, Refused, of_http_error, response_of
from neardup.serve.service import LATE_SECONDS, SERVICE, Deadline, Lane, Service
from neardup.serve.tokens import Right, open_tokens
from neardup.telemetry.log import log
from neardup.telemetry.metrics import HTTP_REQUESTS, HTTP_SECONDS, STARTED, make_metrics
from neardup.telemetry.systemd import notify, notifying_watchdog

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


# MERGED: Between HTTP and an operation: the right of the token, the body, a turn in a lane, and the answer.

LONG_BODY_BYTES = 131_072  # a story of 5,000 words in UTF-8
SCHEME = "Bearer "


def endpoint(operation: Operation) -> Handler:
    """The handler of an operation's route."""

    async def handle(request: web.Request) -> web.Response:
        service = request.app[SERVICE]
        deadline = Deadline(service.section.deadline_seconds)
        authorize(request, operation.right)
        story_id = _story_id(request) if operation.takes_id else None
        if operation.request is not None:
            _expect_json(request, service.section.max_body_bytes)
        parts = service.parts

        async def work() -> Answer:
            body = None if operation.request is None else _parsed(operation.request, await request.read())
            return await operation.begin(parts, story_id, body, deadline)

        answer = await _lane(service, operation, request).carry_out(work(), deadline)
        return web.Response(text=answer.model_dump_json(), content_type="application/json")

    return handle


def authorize(request: web.Request, right: Right | None) -> None:
    """Let a request pass whose token has the right, or any token if `right` is None.  Raises Refused."""
    tokens = request.app[SERVICE].tokens
    if tokens is None:
        return
    given = request.headers.get("Authorization", "")
    token = tokens.find(given.removeprefix(SCHEME)) if given.startswith(SCHEME) else None
    if token is None:
        raise Refused(UNAUTHENTICATED, "send the header `Authorization: Bearer TOKEN` with a valid token")
    request[TOKEN_NAME] = token.name
    if right is not None and right not in token.rights:
        raise Refused(FORBIDDEN, f"the token {token.name} does not have the right {right}")


def _story_id(request: web.Request) -> StoryId:
    try:
        return story_id_of(request.match_info["id"])
    except ValueError as error:
        raise Refused(INVALID, str(error), errors=(InvalidMember(where="id", what=str(error)),)) from None


def _expect_json(request: web.Request, max_bytes: int) -> None:
    if request.content_type != "application/json":
        raise Refused(NOT_JSON, "send the header `Content-Type: application/json`")
    if (request.content_length or 0) > max_bytes:
        raise Refused(TOO_LARGE, f"a body has at most {max_bytes:,} bytes")


def _lane(service: Service, operation: Operation, request: web.Request) -> Lane:
    size = request.content_length
    is_long = operation.lane == "long" or (operation.lane == "by size" and (size is None or size > LONG_BODY_BYTES))
    return service.long if is_long else service.short


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    """The body as a model.  Raises Refused, which names every wrong member, and never quotes the story."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in wrong):
        raise Refused(MALFORMED, wrong[0]["msg"])
    errors = tuple(_invalid_member(one) for one in wrong)
    raise Refused(
        INVALID, "; ".join(f"{one.where}: {one.what}" if one.where else one.what for one in errors), errors=errors
    )


def _invalid_member(error: Any) -> InvalidMember:
    what = "unknown member" if error["type"] == "extra_forbidden" else str(error["msg"]).removeprefix("Value error, ")
    return InvalidMember(where=".".join(map(str, error["loc"])), what=what)


# MERGED: The addresses besides the API: the page to try it, its description, and what operators and Prometheus read.

STATIC = Path(__file__).with_name("static")


async def try_page(_: web.Request) -> web.FileResponse:
    """GET /: a page to try the API."""
    return web.FileResponse(STATIC / "try.html")


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz: whether the process answers."""
    _, doing = request.app[SERVICE].state
    return web.json_response({"healthy": True, "doing": doing})


async def readyz(request: web.Request) -> web.Response:
    """GET /readyz: whether to send it requests."""
    ready, doing = request.app[SERVICE].state
    return web.json_response({"ready": ready, "doing": doing}, status=200 if ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics, for any token."""
    authorize(request, None)
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


# MERGED: `neardup serve`: the web application, and its server.

# For how long a thread may keep the interpreter while others wait.  A check changes threads twenty times: with Python's
# own 5 ms, checks beside each other take a half longer.
THREAD_SECONDS = 0.0005


async def serve(config: Config, listen: str, stop: asyncio.Event) -> None:
    """`neardup serve`: answer requests on HOST:PORT until `stop` is set, then finish those under way.

    Raises as `serving` does.
    """
    make_metrics()
    STARTED.labels("serve").set_to_current_time()
    sys.setswitchinterval(THREAD_SECONDS)
    async with serving(config, listen, stop, lambda doing: notify(f"STATUS={doing}")), notifying_watchdog():
        notify("READY=1")
        await stop.wait()
        notify("STOPPING=1")


@asynccontextmanager
async def serving(
    config: Config, listen: str, stop: asyncio.Event, announce: Callable[[str], None] = lambda _: None
) -> AsyncIterator[str]:
    """Answer requests on HOST:PORT while the context lasts; yields the address, with the port chosen for port 0.

    `announce` is as for `Service`.  Raises Misuse if other machines can reach the address and there are no tokens,
    Fatal if it cannot listen there.  If the parts can never be opened, it sets `stop`, and raises why at the end.
    """
    tokens = None if config.serve.tokens is None else open_tokens(config.serve.tokens)
    if tokens is None and not is_loopback(listen.rpartition(":")[0]):
        raise Misuse(
            f"serve.tokens: {listen} can be reached by other machines: name a file of tokens, and make one with"
            " `neardup serve --new-token NAME`"
        )
    service = Service(config.serve, lambda: open_service_parts(config), tokens, stop, announce)
    opening = asyncio.create_task(service.keep_open(), name="service")
    seconds_to_finish = config.serve.deadline_seconds + LATE_SECONDS
    try:
        async with listening(application(service), listen, "serve.listen", seconds_to_finish) as address:
            log.info("the service listens", address=f"http://{address}/")
            yield address
    finally:
        await service.close()
        await opening


def application(service: Service) -> web.Application:
    """The web application with every route."""
    app = web.Application(middlewares=[observe], client_max_size=service.section.max_body_bytes)
    app[SERVICE] = service
    described = document()

    async def openapi(_: web.Request) -> web.Response:
        return web.json_response(described)

    app.add_routes([web.route(one.method, one.path, endpoint(one)) for one in OPERATIONS])
    app.add_routes(
        [
            web.get("/", try_page),
            web.get("/openapi.json", openapi),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics),
            web.static("/static", STATIC),
        ]
    )
    return app
