"""The connections that a test's server has accepted, and their end."""

import asyncio
from collections.abc import Callable, Coroutine

TURNS = 10  # of the event loop: an accepted connection is served, and a closed one has closed its socket, after three


class Connections:
    """Serves each connection until either side closes it, or `end` is called; `accept` is for `start_server`."""

    def __init__(
        self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]
    ) -> None:
        self._serve = serve
        self._accepted: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start to serve the connection of a client."""
        task = asyncio.create_task(self._serve(reader, writer))
        task.add_done_callback(lambda _: writer.close())
        self._accepted[writer] = task

    async def end(self) -> None:
        """End all connections, and wait until their sockets are closed."""
        await _turns()
        for writer, task in self._accepted.items():
            task.cancel()
            writer.transport.abort()  # waits for no client to read
        await asyncio.gather(*self._accepted.values(), return_exceptions=True)
        await _turns()


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
