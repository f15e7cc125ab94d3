"""`neardup serve` as a web application: what every request passes, the endpoint of an operation, and the server.

observe             the request's id, its log line and its metrics; failures become problems
refuse_other_hosts  without tokens, the service answers to this machine only
endpoint            the right of the token, the body, a turn in a lane, and the answer of the operation
"""

import asyncio
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from aiohttp import web
from pydantic import BaseModel, ValidationError

from neardup.errors import LedgerReplaced, Misuse, NeardupError
from neardup.http.requests import (
    FORBIDDEN,
    INVALID,
    UNAUTHENTICATED,
    UNAVAILABLE,
    Handler,
    ProblemType,
    Refused,
    WrongMember,
    answer_or_problem,
    expect_json,
    find_holder,
    find_route,
    list_wrong_members,
    parse_json,
    read_bearer_token,
    refuse_other_machines,
)
from neardup.http.server import answer_health, answer_metrics, listening, make_static_route
from neardup.http.tokens import is_loopback
from neardup.option_values import Right
from neardup.serve import rights, stories
from neardup.serve.messages import Answer, StoryId, make_problem
from neardup.serve.operations import SUBJECT_PARSERS, Operation, describe_api
from neardup.serve.service import LATE_SECONDS, SERVICE, Deadline, Lane, Service
from neardup.serve.tokens import AUTHOR_PREFIX
from neardup.telemetry.log import load_structlog, log
from neardup.telemetry.metrics import HTTP_REQUESTS, HTTP_SECONDS, STARTED, make_metrics
from neardup.telemetry.systemd import notify, notifying_watchdog

OPERATIONS = (*stories.OPERATIONS, *rights.OPERATIONS)
REQUEST_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE"}
TOKEN_NAME = web.RequestKey("token_name", str)
LOCAL = "local"  # the name of who calls a service without tokens
PROBLEM_OF: dict[type[NeardupError], ProblemType] = {NeardupError: UNAVAILABLE}
LONG_BODY_BYTES = 131_072  # a story of 5,000 words in UTF-8
STATIC = Path(__file__).with_name("static")
# For how long a thread may keep the interpreter while others wait.  A check changes threads twenty times: with Python's
# own 5 ms, checks beside each other take a half longer.
THREAD_SECONDS = 0.0005


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give the request an id, its own or a new one, and count and log its answer."""
    given = request.headers.get("X-Request-ID", "")
    request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    route, method = find_route(request), request.method if request.method in METHODS else "other"
    began = time.perf_counter()
    with load_structlog().contextvars.bound_contextvars(request=request_id):
        response = await answer_or_problem(
            request, handler, partial(_format_problem, request_id=request_id), PROBLEM_OF
        )
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


def _format_problem(refused: Refused, request_id: str) -> str:
    return make_problem(refused, request_id).model_dump_json(exclude_none=True)


@web.middleware
async def refuse_other_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Without tokens, answer this machine only.  Raises Refused."""
    if request.app[SERVICE].tokens is None:
        refuse_other_machines(request)
    return await handler(request)


def make_endpoint(operation: Operation) -> Handler:
    """The handler of an operation's route."""

    async def handle(request: web.Request) -> web.Response:
        service = request.app[SERVICE]
        deadline = Deadline(service.section.deadline_seconds)
        _authorize_for(request, operation)
        subject, query = _parse_subject(request, operation), _parse_query(request, operation)
        received = b""
        if operation.request is not None:
            expect_json(request)
        _ = service.parts  # raises Refused while there are none; the work takes those of its own time
        if operation.request is not None:
            received = await service.receive(request, deadline)

        async def work() -> Answer:
            parts = service.parts
            body = None if operation.request is None else parse_json(operation.request, received)
            return await operation.begin(parts, subject, query, body, deadline, caller=request.get(TOKEN_NAME, LOCAL))

        turn = service.get_turn(subject.number) if operation.writes and isinstance(subject, StoryId) else None
        try:
            answer = await _choose_lane(service, operation, request).carry_out(work(), deadline, turn)
        except LedgerReplaced as error:
            service.reopen(error)
            raise
        return web.Response(text=answer.model_dump_json(), content_type="application/json")

    return handle


def authorize(request: web.Request, right: Right | None) -> None:
    """Let a request pass whose token has the right, or any token if `right` is None.  Raises Refused."""
    tokens = request.app[SERVICE].tokens
    if tokens is None:
        return
    token = find_holder(request, tokens.holders())
    request[TOKEN_NAME] = token.name
    if right is not None and right not in token.rights:
        raise Refused(FORBIDDEN, f"the token {token.name} does not have the right {right}")


def _authorize_for(request: web.Request, operation: Operation) -> None:
    """Let a request pass by a token with the operation's right, or by the author's own.  Raises Refused."""
    brought = read_bearer_token(request)
    if not (operation.admits_author and brought.startswith(AUTHOR_PREFIX)):
        authorize(request, operation.right)
        return
    signed = request.app[SERVICE].parts.author_tokens
    if signed is None:
        raise Refused(UNAUTHENTICATED, "no key signs the tokens of authors")
    request[TOKEN_NAME] = "author"
    if signed.read_author(brought) != _parse_subject(request, operation):
        raise Refused(rights.OTHER_AUTHORS_TOKEN, "the token is not that of this author")


def _parse_subject(request: web.Request, operation: Operation) -> StoryId | int | str | None:
    """What the path names.  Raises Refused."""
    if (name := operation.subject) is None:
        return None
    try:
        return SUBJECT_PARSERS[name](request.match_info[name])
    except ValueError as error:
        raise Refused(INVALID, str(error), errors=(WrongMember(name, str(error)),)) from None


def _parse_query(request: web.Request, operation: Operation) -> BaseModel | None:
    """The query of an operation that takes one.  Raises Refused, which names every wrong member."""
    if operation.query is None:
        return None
    try:
        return operation.query.model_validate(dict(request.query))
    except ValidationError as error:
        wrong = list_wrong_members(error)
        raise Refused(INVALID, "; ".join(map(str, wrong)), errors=wrong) from None


def _choose_lane(service: Service, operation: Operation, request: web.Request) -> Lane:
    size = request.content_length
    is_long = operation.lane == "long" or (operation.lane == "by size" and (size is None or size > LONG_BODY_BYTES))
    return service.long if is_long else service.short


# The addresses besides the API: the page to try it, its description, and what operators and Prometheus read.


async def try_page(_: web.Request) -> web.FileResponse:
    """GET /: a page to try the API."""
    return web.FileResponse(STATIC / "try.html")


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz: whether the process answers."""
    _, doing = request.app[SERVICE].state
    return answer_health({"healthy": True, "doing": doing})


async def readyz(request: web.Request) -> web.Response:
    """GET /readyz: whether to send it requests."""
    ready, doing = request.app[SERVICE].state
    return web.json_response({"ready": ready, "doing": doing}, status=200 if ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics, for any token."""
    authorize(request, None)
    return answer_metrics()


async def serve(service: Service, listen: str, stop: asyncio.Event) -> None:
    """`neardup serve`: answer requests on HOST:PORT until `stop` is set, then finish those under way.

    Raises as `serving` does.
    """
    make_metrics()
    STARTED.labels("serve").set_to_current_time()
    sys.setswitchinterval(THREAD_SECONDS)
    async with serving(service, listen), notifying_watchdog():
        notify("READY=1")
        await stop.wait()
        notify("STOPPING=1")


@asynccontextmanager
async def serving(service: Service, listen: str) -> AsyncIterator[str]:
    """Answer requests on HOST:PORT while the context lasts; yields the address, with the port chosen for port 0.

    Raises Misuse if other machines can reach the address and there are no tokens, Fatal if it cannot listen there, and
    at the end as `Service.keep_open` does.
    """
    if service.tokens is None and not is_loopback(listen.rpartition(":")[0]):
        raise Misuse(
            f"serve.tokens: {listen} can be reached by other machines: name a file of tokens, and make one with"
            " `neardup serve --new-token NAME`"
        )
    opening = asyncio.create_task(service.keep_open(), name="service")
    seconds_to_finish = service.section.deadline_seconds + LATE_SECONDS
    try:
        async with listening(make_application(service), listen, "serve.listen", seconds_to_finish) as address:
            log.info("the service listens", address=f"http://{address}/")
            yield address
    finally:
        await service.close()
        await opening


def make_application(service: Service) -> web.Application:
    """The web application with every route."""
    app = web.Application(middlewares=[observe, refuse_other_hosts], client_max_size=service.section.max_body_bytes)
    app[SERVICE] = service
    described = describe_api(OPERATIONS)

    async def openapi(_: web.Request) -> web.Response:
        return web.json_response(described)

    app.add_routes([web.route(operation.method, operation.path, make_endpoint(operation)) for operation in OPERATIONS])
    app.add_routes(
        [
            web.get("/", try_page),
            web.get("/openapi.json", openapi),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
            web.get("/metrics", metrics),
            make_static_route(STATIC),
        ]
    )
    return app
