"""A server that passes messages to a Redis until a test makes it answer each of them with garbage."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.faults.connections import Connections

MESSAGE = 1 << 20


class GarblingServer:
    """Answers each message with `garbage` and closes the connection, or passes it on while `garbage` is None."""

    def __init__(self, url: str) -> None:
        self.url = ""
        self.garbage: bytes | None = None
        self._socket = url.removeprefix("unix://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of a client until either side closes it."""
        from_redis, to_redis = await asyncio.open_unix_connection(self._socket)
        back = asyncio.create_task(self._pass_back(from_redis, writer))
        try:
            with suppress(OSError):
                while message := await reader.read(MESSAGE):
                    if self.garbage is not None:
                        writer.write(self.garbage)
                        break
                    to_redis.write(message)
        finally:
            back.cancel()
            to_redis.close()

    async def _pass_back(self, from_redis: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while reply := await from_redis.read(MESSAGE):
                writer.write(reply)


@asynccontextmanager
async def garbling(url: str) -> AsyncIterator[GarblingServer]:
    """A server in front of the Redis on a unix socket."""
    made = GarblingServer(url)
    connections = Connections(made.serve)
    server = await asyncio.start_server(connections.accept, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    made.url = f"redis://127.0.0.1:{port}"
    try:
        yield made
    finally:
        server.close()
        await connections.end()
