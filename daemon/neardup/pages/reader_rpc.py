"""The link to a reading process: pickles go there, and come back with their lengths in front.

What is asked in one turn of the loop goes in one message: a message costs both ends more than a request.
"""

import asyncio
import os
import pickle
import signal
import socket
from contextlib import suppress
from itertools import count
from typing import Any, cast

import structlog

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.html import Extraction, Unreadable
from neardup.errors import Fatal, Interrupted, NeardupError, Transient
from neardup.pages.reader_process import LENGTH, Request
from neardup.pages.watchdog import NOBODY, Record, Watched, watched
from neardup.records import Skip

log = structlog.get_logger()


class Link(asyncio.Protocol):
    """What a process was asked for, and what it answers; made by `linked`."""

    def __init__(self, ours: socket.socket, record: Record) -> None:
        self._socket = ours
        self._record = record
        self._process: Watched | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._requests: list[Request] = []  # to be sent
        self._numbers = count()
        self._asked: dict[int, tuple[str, asyncio.Future[Any]]] = {}  # by number: a path, and who waits
        self._version: str | None = None  # of the fingerprints that are made there, told when all is ready
        self.cpu_seconds = 0.0
        self.ended = False
        self._unwanted = False

    @property
    def under_way(self) -> int:
        """Pages that it was asked for and has not answered."""
        return len(self._asked)

    async def ask(self, work: str, path: str, etag: str | None) -> Any:
        """What `work` gives of the page at a path.

        Raises what `work` and fetching raise; Unreadable for a page over its budget; Interrupted or Transient
        where the process dies, Fatal where it never lived.
        """
        if self.ended:
            raise self._death(NOBODY)
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._asked[number] = path, answer
        if not self._requests:
            asyncio.get_running_loop().call_soon(self._send_requests)
        self._requests.append((number, work, path, etag))
        return await answer

    def look(self) -> None:
        """End the process if the page that it computes takes too much."""
        if self._process is None or self.ended:
            return
        with suppress(OSError):  # it has ended by itself
            over = self._process.over()
            if over is None:
                return
            number = self._process.to_blame if over == "memory" else self._process.number
            os.kill(self._process.pid, signal.SIGKILL)
            if number in self._asked:
                log.warning("a page takes too much to be read", page=self._asked[number][0], over=over)
                self._answer(number, Unreadable(Skip.OVER_BUDGET))
            self._end(number)

    def _send_requests(self) -> None:
        requests, self._requests = self._requests, []
        if not self.ended:
            self.send(requests)

    def send(self, message: object) -> None:
        """Send a message, in the end."""
        assert self._transport is not None
        pickled = pickle.dumps(message)
        self._transport.write(LENGTH.pack(len(pickled)) + pickled)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has taken the socket over."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's own are not of this class

    def data_received(self, data: bytes) -> None:
        """Some bytes of answers, not always whole ones."""
        self._received += data
        received, start = self._received, 0
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
        del received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended."""
        self._end()

    def _take(self, message: Any) -> None:
        if self._version is None:
            pid, self._version, compiled = message
            self._process = watched(pid, self._record)
            if self._version != fingerprint_version.version():
                self._end()
            if not compiled:
                log.warning("this system forbids code compiled here: fingerprints take several times as long")
            return
        answers, self.cpu_seconds = message
        for number, answer in answers:
            self._answer(number, answer)

    def _answer(self, number: int, answer: Any) -> None:
        _, waiting = self._asked.pop(number)
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

    def _end(self, computed: int | None = None) -> None:
        """Once; whoever waits is told that the process died, or never came to life.

        The page that it died over is `computed`, or the one on record.
        """
        if self.ended:
            return
        self.ended = True
        if self._asked and not self._unwanted and self._version is not None:
            log.warning("a reading process died, what it had in hand is read again", pages=len(self._asked))
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # at once, and not when the loop comes to it
        if self._transport is not None:
            self._transport.abort()
        asked, self._asked = self._asked, {}
        computed = self._record.number if computed is None else computed
        for number, (_, waiting) in asked.items():
            if not waiting.done():
                waiting.set_exception(self._death(number, computed))

    def _death(self, number: int, computed: int = NOBODY) -> NeardupError:
        if self._unwanted:  # maybe before it was ready
            return Transient("no more is read", "closed")
        match self._version:
            case None:
                return Fatal("a reading process did not start; what it said is above")
            case version if version != fingerprint_version.version():
                return Fatal("the program was replaced while it ran; start it again")
        if computed == NOBODY:
            return Transient("a reading process ended", "crashed")
        return Interrupted(over_it=number == computed)


async def linked(ours: socket.socket, record: Record, content: Content, extraction: Extraction) -> Link:
    """The link to the process at the other end of a socket, which is told what to read, and how."""
    link = Link(ours, record)
    await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
    link.send((content, extraction))
    return link
