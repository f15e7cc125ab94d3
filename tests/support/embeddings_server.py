"""A server that follows OpenAI's `/v1/embeddings`: its vectors say which text each belongs to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.support.servers import free_port

Answer = Callable[[list[str]], web.Response]


def vector_of(text: str, dimensions: int = 8) -> list[float]:
    """A vector that depends on the text alone."""
    return [1.0 + (sum(text.encode()) * (n + 3)) % 17 for n in range(dimensions)]


def embeddings(texts: list[str], dimensions: int = 8) -> web.Response:
    """The right answer, in reverse: the index says which text a vector belongs to."""
    data = [{"index": n, "embedding": vector_of(text, dimensions)} for n, text in enumerate(texts)]
    return web.json_response({"object": "list", "data": data[::-1], "model": "test"})


def status(number: int) -> Answer:
    return lambda _: web.Response(status=number, text="busy")


def garbage(text: str) -> Answer:
    return lambda _: web.Response(text=text, content_type="application/json")


@asynccontextmanager
async def embeddings_server(*answers: Answer | None) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that gives these answers in turn, and right ones from then on; None is silence.

    Yields its URL and the list of the requests received, each a body and its headers.
    """
    received: list[Any] = []
    remaining = iter(answers)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        received.append((body, dict(request.headers)))
        give = next(remaining, embeddings)
        if give is None:
            await asyncio.Event().wait()
        assert give is not None
        return give(body["input"])

    app = web.Application()
    app.add_routes([web.post("/v1/embeddings", answer)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}/v1/embeddings", received
    finally:
        await runner.cleanup()
