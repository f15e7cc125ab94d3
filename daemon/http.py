"""/metrics and /healthz over HTTP."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from daemon.errors import Fatal

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
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    host, _, port = listen.rpartition(":")
    try:
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise Fatal(f"metrics.listen: cannot listen on {listen}: {error.strerror}") from error
    try:
        yield
    finally:
        await runner.cleanup()


async def serve_if_free(stack: AsyncExitStack, listen: str) -> None:
    """The same for a one-shot run, whose metrics are worth watching, but not worth failing for."""
    try:
        await stack.enter_async_context(served(listen, lambda: {"healthy": True}))
    except Fatal as error:
        log.warning("no /metrics for this run", why=str(error))
