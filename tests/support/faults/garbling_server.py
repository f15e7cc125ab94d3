"""A server that passes messages to a Redis until it is told to answer each of them with garbage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

MESSAGE = 1 << 20


class GarblingServer:
    """Answers each message with `garbage` and closes the connection, or passes it on while `garbage` is None."""

    def __init__(self, url: str) -> None:
        self.url = ""
        self.garbage: bytes | None = None
        self._socket = url.removeprefix("unix://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_redis, to_redis = await asyncio.open_unix_connection(self._socket)
        back = asyncio.create_task(self._pass_back(from_redis, writer))
        with suppress(OSError):
            while message := await reader.read(MESSAGE):
                if self.garbage is not None:
                    writer.write(self.garbage)
                    break
                to_redis.write(message)
        back.cancel()
        writer.close()
        to_redis.close()

    async def _pass_back(self, from_redis: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while reply := await from_redis.read(MESSAGE):
                writer.write(reply)


@asynccontextmanager
async def garbling(url: str) -> AsyncIterator[GarblingServer]:
    """A server in front of the Redis on a unix socket."""
    made = GarblingServer(url)
    server = await asyncio.start_server(made.serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    made.url = f"redis://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
