"""A server that receives webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.support.servers import free_port

SECRET = "T0KEN"
Messages = list[tuple[bytes, dict[str, str]]]


@asynccontextmanager
async def webhook_server(*statuses: int, messages: Messages | None = None) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that answers with these statuses in turn; yields its URL and the list of the payloads received.

    Their bytes and headers are added to `messages`.
    """
    received: list[Any] = []
    messages = [] if messages is None else messages
    remaining = iter(statuses)

    async def hook(request: web.Request) -> web.Response:
        received.append(await request.json())
        messages.append((await request.read(), dict(request.headers)))
        return web.Response(status=next(remaining), headers={"Location": "/elsewhere"})

    app = web.Application()
    app.add_routes([web.post(f"/{SECRET}", hook)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/{SECRET}", received
    finally:
        await runner.cleanup()
