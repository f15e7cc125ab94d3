"""The parts of the HTTP service: opened when they can be, and kept open until the last request has ended."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

from aiohttp import web

from neardup.app import ServiceParts
from neardup.config import Serve
from neardup.errors import Transient
from neardup.problem_types import UNAVAILABLE
from neardup.serve.lanes import Lane
from neardup.serve.problems import Refused
from neardup.serve.tokens import Token
from neardup.telemetry.log import log
from neardup.telemetry.metrics import RETRIES
from neardup.token_file import TokenFile

OPEN_RETRY_SECONDS = 5.0
SHORT_SLOTS = 16  # most of a check is spent waiting for the store
LONG_SLOTS = 1  # a novel occupies a core for seconds


class Service:
    """The HTTP service: its parts while they are open, its tokens, and its lanes.

    Without `tokens`, every request may do everything.  `announce` is called with what the service does, as it changes.
    """

    def __init__(
        self,
        section: Serve,
        open_parts: Callable[[], AbstractAsyncContextManager[ServiceParts]],
        tokens: TokenFile[Token] | None,
        stop: asyncio.Event,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.section = section
        self.tokens = tokens
        self.short = Lane("serve", SHORT_SLOTS, section.queue)
        self.long = Lane("serve_long", LONG_SLOTS, section.queue)
        self._open_parts = open_parts
        self._stop = stop
        self._announce = announce
        self._drained = asyncio.Event()
        self._parts: ServiceParts | None = None
        self._doing = "starting"

    @property
    def parts(self) -> ServiceParts:
        """The open parts.  Raises Refused while they cannot be opened."""
        if self._parts is None:
            raise Refused(UNAVAILABLE, self._doing)
        return self._parts

    @property
    def state(self) -> tuple[bool, str]:
        """Whether the service is ready for requests, and what it does."""
        if self._stop.is_set():
            return False, "stopping"
        return self._parts is not None, self._doing

    async def keep_open(self) -> None:
        """Open the parts, again and again while that fails, and close them after `close`.

        An error that only an operator can mend sets `stop` and is raised.
        """
        try:
            while not self._drained.is_set():
                try:
                    async with self._open_parts() as parts:
                        self._parts = parts
                        self._set_doing("serving")
                        await self._drained.wait()
                except Transient as error:
                    RETRIES.labels("open", error.reason).inc()
                    self._set_doing(f"waiting: {error}")
                    log.warning("the service waits", why=str(error))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._drained.wait(), OPEN_RETRY_SECONDS)
        finally:
            self._parts = None
            self._stop.set()

    async def close(self) -> None:
        """Wait for the work under way; then `keep_open` closes the parts."""
        await self.short.drain()
        await self.long.drain()
        self._drained.set()

    def _set_doing(self, doing: str) -> None:
        self._doing = doing
        self._announce(doing)


SERVICE = web.AppKey("service", Service)
