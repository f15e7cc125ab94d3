"""A server that receives webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.support.servers import free_port

SECRET = "T0KEN"


@asynccontextmanager
async def other_side(*answers: int) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that answers so, in turn; its URL, and what it was told."""
    told: list[Any] = []
    rest = iter(answers)

    async def hook(request: web.Request) -> web.Response:
        told.append(await request.json())
        return web.Response(status=next(rest), headers={"Location": "/elsewhere"})

    app = web.Application()
    app.add_routes([web.post(f"/{SECRET}", hook)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/{SECRET}", told
    finally:
        await runner.cleanup()
