"""The link to a reading process: pickles go there, and come back with their lengths in front."""

import asyncio
import pickle
import socket
from contextlib import suppress
from itertools import count
from typing import Any, cast

import structlog

from daemon.config import Content
from daemon.core import golden
from daemon.core.html import Extraction
from daemon.errors import Fatal, NeardupError, Transient
from daemon.reading import LENGTH, Read

log = structlog.get_logger()


class Died(NeardupError):
    """A reading process died while it had this page in hand, and maybe others."""


class Link(asyncio.Protocol):
    """What a process was asked for, and what it answers; made by `linked`."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._transport: asyncio.WriteTransport | None = None
        self._partial = b""
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._version: str | None = None  # of the fingerprints that are made there, told when all is ready
        self.cpu_seconds = 0.0
        self.ended = False
        self._unwanted = False

    @property
    def under_way(self) -> int:
        """Pages that it was asked for and has not answered."""
        return len(self._asked)

    async def ask(self, path: str, etag: str | None) -> Read | None:
        """The page at a path; raises Died where the process dies meanwhile, Fatal where it never lived."""
        if self.ended:
            raise self._death()
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self.send((number, path, etag))
        read: Read | None = await answer
        return read

    def send(self, message: object) -> None:
        """Send a message, in the end."""
        assert self._transport is not None
        self._transport.write(pickle.dumps(message))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has taken the socket over."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's own are not of this class

    def data_received(self, data: bytes) -> None:
        """Some bytes of answers, not always whole ones."""
        received, start = self._partial + data, 0
        try:
            while not self.ended and len(received) >= (body := start + LENGTH.size):
                end = body + LENGTH.unpack_from(received, start)[0]
                if len(received) < end:
                    break
                self._take(pickle.loads(received[body:end]))  # noqa: S301 - from a process of our own
                start = end
        except Exception:
            log.exception("a reading process gave an answer that cannot be read")
            self._end()
        self._partial = received[start:]

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended."""
        self._end()

    def _take(self, message: Any) -> None:
        if self._version is None:
            self._version, compiled = message
            if self._version != golden.version():
                self._end()
            if not compiled:
                log.warning("this system forbids code compiled here: fingerprints take several times as long")
            return
        number, answer, self.cpu_seconds = message
        waiting = self._asked.pop(number)
        if waiting.done():  # whoever awaited it was cancelled
            return
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def close(self) -> None:
        """Nobody wants it any more; whoever waits is told so."""
        self._unwanted = not self.ended
        self._end()

    def _end(self) -> None:
        """Once; whoever waits is told that the process died, or never came to life."""
        if self.ended:
            return
        self.ended = True
        if self._asked and not self._unwanted and self._version is not None:
            log.warning("a reading process died, what it had in hand is read one by one", pages=len(self._asked))
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # at once, and not when the loop comes to it
        if self._transport is not None:
            self._transport.abort()
        asked, self._asked = self._asked, {}
        for waiting in asked.values():
            if not waiting.done():
                waiting.set_exception(self._death())

    def _death(self) -> NeardupError:
        match self._version:
            case None:
                return Fatal("a reading process did not start; what it said is above")
            case version if version != golden.version():
                return Fatal("the program was replaced while it ran; start it again")
        return Transient("no more is read", "closed") if self._unwanted else Died("a reading process died")


async def linked(ours: socket.socket, content: Content, extraction: Extraction) -> Link:
    """The link to the process at the other end of a socket, which is told what to read, and how."""
    link = Link(ours)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
    link.send((content, extraction))
    return link
