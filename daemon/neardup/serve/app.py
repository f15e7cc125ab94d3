"""`neardup serve`: the web application, and its server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from neardup.app import open_service_parts
from neardup.config import Config
from neardup.config.address import is_loopback
from neardup.errors import Misuse
from neardup.serve import pages
from neardup.serve.endpoint import endpoint
from neardup.serve.lanes import LATE_SECONDS
from neardup.serve.middlewares import observe
from neardup.serve.openapi import document
from neardup.serve.operations import OPERATIONS
from neardup.serve.service import SERVICE, Service
from neardup.serve.tokens import open_tokens
from neardup.telemetry.http import listening
from neardup.telemetry.log import log
from neardup.telemetry.metrics import STARTED, make_metrics
from neardup.telemetry.systemd import notify, notifying_watchdog

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
            web.get("/", pages.try_page),
            web.get("/openapi.json", openapi),
            web.get("/healthz", pages.healthz),
            web.get("/readyz", pages.readyz),
            web.get("/metrics", pages.metrics),
            web.static("/static", pages.STATIC),
        ]
    )
    return app
