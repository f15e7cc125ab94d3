"""A connection to a reader process: it sends numbered requests, matches the answers, and ends with the process.

A message is a pickle with its length in front.  Requests made in one iteration of the event loop share a message: a
message costs both ends more than a request.  A request concerns several pages, each of which is answered once, and
answers are sent as they are found.  This module does not interpret requests, and of answers only which pages they are
for.
"""

import asyncio
import os
import pickle
import signal
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from msgspec import Struct

from neardup.errors import Fatal, NeardupError, OverBudget, ReaderDied, Transient
from neardup.pages.watchdog import NO_PAGE, Record, Stillness, WatchedProcess, watch
from neardup.telemetry.log import log

LENGTH = struct.Struct("!i")  # the prefix that multiprocessing.connection uses


class Answers(Protocol):
    """Answers to some pages of a request, and the `places` of these pages in it."""

    @property
    def places(self) -> Sequence[int]: ...


class Failures(dict[int, NeardupError]):
    """By place, why pages have no answer."""

    @property
    def places(self) -> Sequence[int]:
        return list(self)


class _RequestUnderWay(Struct):
    """A request, whose pages have the numbers from `first` on; `left` are the places of those without an answer yet."""

    first: int
    subjects: Sequence[int | None]
    left: set[int]
    arrived: asyncio.Queue[Any]

    def receive(self, answers: Answers) -> None:
        self.left.difference_update(answers.places)
        self.arrived.put_nowait(answers)


class ReaderConnection(asyncio.Protocol):
    """Requests under way in one reader process; made by `connect_reader`.

    The process's first message is its greeting.
    """

    def __init__(self, sock: socket.socket, record: Record, greeting: str) -> None:
        self._socket = sock
        self._record = record
        self._greeting = greeting
        self._process: WatchedProcess | None = None
        self._stillness: Stillness | None = None
        self._greeted_or_ended = asyncio.Event()
        self._refusal: NeardupError | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._received = bytearray()
        self._unsent: list[tuple[int, object]] = []
        self._next_number = 0
        self._pending: dict[int, _RequestUnderWay] = {}  # by the number of the first page
        self.under_way = 0  # pages without an answer yet
        self.cpu_seconds = 0.0
        self.ended = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The id of the process; None before it is forked."""
        return self._record.pid

    @property
    def costly_subject(self) -> int | None:
        """The subject of the request over which the running process has already spent COSTLY_SECONDS."""
        if self.ended or self._process is None or self._process.costly != self._record.number:
            return None
        request = self._request_of(self._process.costly)
        return None if request is None else request.subjects[self._process.costly - request.first]

    def _request_of(self, number: int) -> _RequestUnderWay | None:
        """The request under way that the page with this number belongs to."""
        return next((request for request in self._pending.values() if number - request.first in request.left), None)

    async def wait_until_started(self) -> bool:
        """Wait until the process has sent its greeting or has ended; returns whether it runs.

        Raises the reason to refuse it.
        """
        await self._greeted_or_ended.wait()
        if self._refusal is not None:
            raise self._refusal
        return not self.ended

    async def ask(self, request: object, subjects: Sequence[int | None]) -> AsyncIterator[Any]:
        """Send a request that concerns as many pages as there are `subjects`; yields answers until each page has one.

        `costly_subject` returns the subject of a page that costs much.  The answers are those of the process, and
        Failures: OverBudget for a page that exceeds its budget, ReaderDied or Transient if the process dies.
        """
        if self.ended:
            yield Failures(dict.fromkeys(range(len(subjects)), self._explain_end(NO_PAGE, NO_PAGE)))
            return
        left = set(range(len(subjects)))
        pending = _RequestUnderWay(self._next_number, subjects, left, asyncio.Queue())
        self._next_number += len(subjects)
        self.under_way += len(subjects)
        self._pending[pending.first] = pending
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._send_requests)
        self._unsent.append((pending.first, request))
        while left or not pending.arrived.empty():
            yield await pending.arrived.get()

    def enforce_budget(self) -> None:
        """Kill the process if the page that it computes exceeds its budget, or if the process stands still."""
        if self._process is None or self._stillness is None or self.ended:
            return
        with suppress(OSError):  # the process has just ended
            resource = self._process.check_budgets()
            if resource is None:
                if self._stillness.lasts(idle=not self.under_way):
                    os.kill(self._process.pid, signal.SIGKILL)
                    self._end()
                    log.warning("a reader process stood still and is replaced", seconds=round(self._stillness.seconds))
                return
            number = self._process.to_blame if resource == "memory" else self._process.number
            os.kill(self._process.pid, signal.SIGKILL)
            if (request := self._request_of(number)) is not None:
                self._receive(request.first, Failures({number - request.first: OverBudget(resource)}))
            self._end(number)

    def _send_requests(self) -> None:
        requests, self._unsent = self._unsent, []
        if not self.ended:
            self.send(requests)

    def send(self, message: object) -> None:
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
            if message != self._greeting:
                self._refusal = Fatal("the program was replaced while it ran; start it again")
                self._end()
            self._greeted_or_ended.set()
            return
        parts, self.cpu_seconds = message
        for number, answers in parts:
            self._receive(number, answers)

    def _receive(self, number: int, answers: Answers) -> None:
        """Hand answers to the caller who waits for them; one who was cancelled leaves them in the queue."""
        request = self._pending[number]
        self.under_way -= len(answers.places)
        request.receive(answers)
        if not request.left:
            del self._pending[number]

    def close(self) -> None:
        """End the connection; requests under way fail."""
        self._closed = not self.ended
        self._end()

    def _end(self, computed: int | None = None) -> None:
        """Fail the requests under way, once: the process died, never started, or is no longer needed.

        `computed` is the number of the page that the process died over; None takes it from the record.
        """
        if self.ended:
            return
        self.ended = True
        self._greeted_or_ended.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # now: the transport closes only in a later iteration of the loop
        if self._transport is not None:
            self._transport.abort()
        pending, failed = list(self._pending.values()), self.under_way
        computed = self._record.number if computed is None else computed
        for request in pending:
            failures = {place: self._explain_end(request.first + place, computed) for place in sorted(request.left)}
            self._receive(request.first, Failures(failures))
        if failed and not self._closed and self._process is not None:  # last: stderr may be a broken pipe
            log.warning("a reader process died, its requests are sent again", requests=failed)

    def _explain_end(self, number: int, computed: int) -> NeardupError:
        """The error for the page `number` after the process ended while it computed the page `computed`."""
        if self._closed:  # checked first: the process may not have been ready yet
            return Transient("the reader pool is closed", "closed")
        if self._refusal is not None:
            return self._refusal
        if computed == NO_PAGE:
            return Transient("a reader process ended", "crashed")
        return ReaderDied(computing=number == computed)


async def connect_reader(sock: socket.socket, record: Record, greeting: str, settings: object) -> ReaderConnection:
    """Connect to the process at the other end of a socket; `settings` is the first message that it receives."""
    connection = ReaderConnection(sock, record, greeting)
    await asyncio.get_running_loop().create_unix_connection(lambda: connection, sock=sock)
    connection.send(settings)
    return connection
