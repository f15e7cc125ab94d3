"""A connection to a reader process: it sends numbered requests, matches the answers, and ends with the process.

A message is a pickle with its length in front.  Requests made in one iteration of the event loop share a message: a
message costs both ends more than a request.  This module does not interpret requests and answers.
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

from neardup.errors import NeardupError, OverBudget, ReaderDied, Transient
from neardup.log import log
from neardup.pages.watchdog import NO_PAGE, Record, Stillness, WatchedProcess, watch

LENGTH = struct.Struct("!i")  # the prefix that multiprocessing.connection uses

ReasonToRefuse = Callable[[Any], NeardupError | None]  # a process's greeting -> why it cannot be used, or None


class ReaderConnection(asyncio.Protocol):
    """Requests under way in one reader process; made by `connect_reader`.

    The process's first message is its greeting.
    """

    def __init__(self, sock: socket.socket, record: Record, reason_to_refuse: ReasonToRefuse) -> None:
        self._socket = sock
        self._record = record
        self._reason_to_refuse = reason_to_refuse
        self._process: WatchedProcess | None = None
        self._stillness: Stillness | None = None
        self._greeted_or_ended = asyncio.Event()
        self._refusal: NeardupError | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._unsent: list[tuple[int, object]] = []
        self._numbers = count()
        self._pending: dict[int, asyncio.Future[Any]] = {}  # by request number
        self._subjects: dict[int, int] = {}  # of the pending requests that have one
        self.cpu_seconds = 0.0
        self.ended = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The id of the process; None before it is forked."""
        return self._record.pid

    @property
    def under_way(self) -> int:
        """The number of requests without an answer yet."""
        return len(self._pending)

    @property
    def costly_subject(self) -> int | None:
        """The subject of the request over which the running process has already spent COSTLY_SECONDS."""
        if self.ended or self._process is None or self._process.costly != self._record.number:
            return None
        return self._subjects.get(self._process.costly)

    async def started(self) -> bool:
        """Wait until the process has sent its greeting or has ended; returns whether it runs.

        Raises the reason to refuse it.
        """
        await self._greeted_or_ended.wait()
        if self._refusal is not None:
            raise self._refusal
        return not self.ended

    async def ask(self, request: object, subject: int | None = None) -> Any:
        """Send a request and return its answer; an answer that is an exception is raised.

        `costly_subject` returns the `subject` of a request that costs much.  Raises OverBudget for a request that
        exceeds its budget, ReaderDied or Transient if the process dies.
        """
        if self.ended:
            raise self._reason_ended(NO_PAGE, NO_PAGE)
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        if subject is not None:
            self._subjects[number] = subject
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send_requests)
        self._unsent.append((number, request))
        return await answer

    def enforce_budget(self) -> None:
        """Kill the process if the page that it computes exceeds its budget, or if the process stands still."""
        if self._process is None or self._stillness is None or self.ended:
            return
        with suppress(OSError):  # the process has just ended
            resource = self._process.exceeded()
            if resource is None:
                if self._stillness.lasts(idle=not self._pending):
                    os.kill(self._process.pid, signal.SIGKILL)
                    self._end()
                    log.warning("a reader process stood still and is replaced", seconds=round(self._stillness.seconds))
                return
            number = self._process.to_blame if resource == "memory" else self._process.number
            os.kill(self._process.pid, signal.SIGKILL)
            if number in self._pending:
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
        """Called by the event loop: the socket is open."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's transports do not inherit from it

    def data_received(self, data: bytes) -> None:
        """Called by the event loop: some bytes arrived, not always whole messages."""
        self._received += data
        received, start = self._received, 0
        try:
            while not self.ended and len(received) >= (body := start + LENGTH.size):
                end = body + LENGTH.unpack_from(received, start)[0]
                if len(received) < end:
                    break
                self._handle_message(pickle.loads(received[body:end]))  # noqa: S301 - from a process of our own
                start = end
        except Exception:
            log.exception("a reader process sent a message that cannot be read")
            self._end()
        del received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop: the process has ended."""
        self._end()

    def _handle_message(self, message: Any) -> None:
        if self._process is None:
            pid = cast("int", self._record.pid)
            try:
                self._process, self._stillness = watch(pid, self._record), Stillness(pid)
            except OSError:  # it was killed since
                self._end()
                return
            self._refusal = self._reason_to_refuse(message)
            if self._refusal is not None:
                self._end()
            self._greeted_or_ended.set()
            return
        answers, self.cpu_seconds = message
        for number, answer in answers:
            self._answer(number, answer)

    def _answer(self, number: int, answer: Any) -> None:
        future = self._pending.pop(number)
        self._subjects.pop(number, None)
        if future.done():  # its caller was cancelled
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def close(self) -> None:
        """End the connection; requests under way fail."""
        self._closed = not self.ended
        self._end()

    def _end(self, computed: int | None = None) -> None:
        """Fail the requests under way, once: the process died, never started, or is no longer needed.

        `computed` is the number of the request that the process died over; None takes it from the record.
        """
        if self.ended:
            return
        self.ended = True
        self._greeted_or_ended.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # now: the transport closes only in a later iteration of the loop
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, {}
        computed = self._record.number if computed is None else computed
        for number, future in pending.items():
            if not future.done():
                future.set_exception(self._reason_ended(number, computed))
        if pending and not self._closed and self._process is not None:  # last: stderr may be a broken pipe
            log.warning("a reader process died, its requests are sent again", requests=len(pending))

    def _reason_ended(self, number: int, computed: int) -> NeardupError:
        """The error for request `number` after the process ended while it computed request `computed`."""
        if self._closed:  # checked first: the process may not have been ready yet
            return Transient("the reader pool is closed", "closed")
        if self._refusal is not None:
            return self._refusal
        if computed == NO_PAGE:
            return Transient("a reader process ended", "crashed")
        return ReaderDied(computing=number == computed)


async def connect_reader(
    sock: socket.socket, record: Record, reason_to_refuse: ReasonToRefuse, settings: object
) -> ReaderConnection:
    """Connect to the process at the other end of a socket; `settings` is the first message that it receives."""
    connection = ReaderConnection(sock, record, reason_to_refuse)
    await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=sock)
    connection.send(settings)
    return connection
