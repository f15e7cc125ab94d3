"""Applications over HTTP, and /metrics and /healthz among them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from neardup.errors import Fatal

SHUTDOWN_SECONDS = 5.0  # that requests under way are waited for

log = structlog.get_logger()
Health = Callable[[], dict[str, Any]]


@asynccontextmanager
async def served(listen: str, health: Health) -> AsyncIterator[None]:
    """Serve on HOST:PORT while the context lasts.  Raises Fatal where the address is not to be had.

    `health` gives the object that /healthz answers with; its `healthy` decides between 200 and 503.
    """

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        state = health()
        return web.json_response(state, status=200 if state["healthy"] else 503)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz)])
    async with listening(app, listen, "metrics.listen"):
        yield


@asynccontextmanager
async def listening(app: web.Application, listen: str, setting: str) -> AsyncIterator[str]:
    """Serve an application on HOST:PORT while the context lasts; gives the address, port 0 being any that is free.

    Raises Fatal, naming the setting, where the address is not to be had.  No request is logged: addresses
    hold what people search for.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    host, _, port = listen.rpartition(":")
    try:
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise Fatal(f"{setting}: cannot listen on {listen}: {error.strerror}") from error
    try:
        yield f"{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def serve_if_free(stack: AsyncExitStack, listen: str) -> None:
    """The same for a one-shot run, whose metrics are worth watching, but not worth failing for."""
    try:
        await stack.enter_async_context(served(listen, lambda: {"healthy": True}))
    except Fatal as error:
        log.warning("no /metrics for this run", why=str(error))
