"""A connection to a reader process: it sends numbered requests, matches the answers, and ends with the process.

Messages are pickles with their lengths in front.  Requests made in one turn of the event loop go in one message: a
message costs both ends more than a request.  What requests and answers are about is their makers' business.
"""

import asyncio
import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, cast

import structlog

from neardup.errors import Fatal, NeardupError, OverBudget, ReaderDied, Transient
from neardup.pages.watchdog import NONE_COMPUTED, Record, Watched, watched

LENGTH = struct.Struct("!i")  # in front of each message, as multiprocessing has it

Refusal = Callable[[Any], NeardupError | None]  # a process's greeting -> why it is of no use, or None

log = structlog.get_logger()


class ReaderConnection(asyncio.Protocol):
    """Requests under way in one reader process; made by `connect_reader`.

    The process's first message is its id and its greeting.
    """

    def __init__(self, ours: socket.socket, record: Record, refusal: Refusal) -> None:
        self._socket = ours
        self._record = record
        self._refusal = refusal
        self._process: Watched | None = None
        self._refused: NeardupError | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._unsent: list[tuple[int, object]] = []
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}  # by the number of their request
        self.cpu_seconds = 0.0
        self.ended = False
        self._closed = False

    @property
    def under_way(self) -> int:
        """Requests without an answer yet."""
        return len(self._waiting)

    async def ask(self, request: object) -> Any:
        """The answer to a request; an answer that is an exception is raised.

        Raises OverBudget for a request that takes too much, ReaderDied or Transient where the process dies,
        Fatal where it never started.
        """
        if self.ended:
            raise self._death(NONE_COMPUTED, NONE_COMPUTED)
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send_requests)
        self._unsent.append((number, request))
        return await answer

    def enforce_budget(self) -> None:
        """End the process if the request that it computes takes too much."""
        if self._process is None or self.ended:
            return
        with suppress(OSError):  # it has ended by itself
            resource = self._process.over()
            if resource is None:
                return
            number = self._process.to_blame if resource == "memory" else self._process.number
            os.kill(self._process.pid, signal.SIGKILL)
            if number in self._waiting:
                self._answer(number, OverBudget(resource))
            self._end(number)

    def _send_requests(self) -> None:
        requests, self._unsent = self._unsent, []
        if not self.ended:
            self.send(requests)

    def send(self, message: object) -> None:
        """Queue a message to be sent."""
        assert self._transport is not None
        pickled = pickle.dumps(message)
        self._transport.write(LENGTH.pack(len(pickled)) + pickled)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The event loop has taken the socket over."""
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
            log.exception("a reader process gave an answer that cannot be read")
            self._end()
        del received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """The process has ended."""
        self._end()

    def _take(self, message: Any) -> None:
        if self._process is None:
            pid, greeting = message
            self._process = watched(pid, self._record)
            self._refused = self._refusal(greeting)
            if self._refused is not None:
                self._end()
            return
        answers, self.cpu_seconds = message
        for number, answer in answers:
            self._answer(number, answer)

    def _answer(self, number: int, answer: Any) -> None:
        waiting = self._waiting.pop(number)
        if waiting.done():  # its caller was cancelled
            return
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def close(self) -> None:
        """End the connection; what is under way fails."""
        self._closed = not self.ended
        self._end()

    def _end(self, computed: int | None = None) -> None:
        """Fail what is under way, once: the process died, or never started.

        The request that it died over is `computed`, or the one on record.
        """
        if self.ended:
            return
        self.ended = True
        if self._waiting and not self._closed and self._process is not None:
            log.warning("a reader process died, its requests are sent again", requests=len(self._waiting))
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # at once, and not when the event loop comes to it
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, {}
        computed = self._record.number if computed is None else computed
        for number, answer in waiting.items():
            if not answer.done():
                answer.set_exception(self._death(number, computed))

    def _death(self, number: int, computed: int) -> NeardupError:
        """The error of a request after the process has ended while it computed the request of number `computed`."""
        if self._closed:  # perhaps before it was ready
            return Transient("no more is read", "closed")
        if self._process is None:
            return Fatal("a reader process did not start; the reason it gave is above")
        if self._refused is not None:
            return self._refused
        if computed == NONE_COMPUTED:
            return Transient("a reader process ended", "crashed")
        return ReaderDied(computing=number == computed)


async def connect_reader(ours: socket.socket, record: Record, refusal: Refusal, setting: object) -> ReaderConnection:
    """The connection to the process at the other end of a socket; `setting` is the first message it is sent."""
    connection = ReaderConnection(ours, record, refusal)
    await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=ours)
    connection.send(setting)
    return connection
