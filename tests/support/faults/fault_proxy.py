"""A proxy that injects faults between neardup and a real HTTP server, and what a run says of them.

It runs in one thread with one event loop, and supports GET and HEAD.  A request gets the next fault planned for its
path, else the fault that `always` returns for the path.  A message that names a page speaks of one fault of that page.
"""

import asyncio
import re
import socket
import struct
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.faults.fault_table import Said

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


BLANK_LINE = b"\r\n\r\n"
ETAG, OTHER_MD5 = re.compile(rb"\r\netag: [^\r]*", re.IGNORECASE), b"0" * 32
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: \d+", re.IGNORECASE)


class Fault(StrEnum):
    """The faults that can be injected into a request."""

    NONE = "none"
    INTERNAL = "500 InternalError"
    SLOW_DOWN = "503 SlowDown"
    DENIED = "403 AccessDenied"
    NOT_FOUND = "404 NoSuchKey"
    NO_BUCKET = "404 NoSuchBucket"
    EXPIRED = "400 ExpiredToken"
    OTHER_REGION = "400 AuthorizationHeaderMalformed"
    MOVED = "301 PermanentRedirect"
    ERROR_DOCUMENT = "200 InternalError"
    UNASKED = "304 Not Modified without an ETag in the request"
    SHORT = "Content-Length and body shorter than the object"
    SILENT = "timeout before the head"
    STUCK = "timeout inside the body"
    TRUNCATED = "body shorter than Content-Length"
    WRONG_ETAG = "the MD5 of another body as ETag"
    RESET = "connection reset"
    RESET_INSIDE = "connection reset inside the body"


class InjectedFault(NamedTuple):
    """A fault of a request for a path, at a time of the monotonic clock."""

    time: float
    path: str
    kind: Fault


class Proxy:
    """Holds the planned faults, counts requests, and lists the injected faults; created by `proxied`."""

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self.endpoint = ""
        self.always: Callable[[str], Fault] = lambda _: Fault.NONE
        self.injected: list[InjectedFault] = []
        self.requests: Counter[str] = Counter()
        self._planned: dict[str, deque[Fault]] = {}

    def plan(self, faults: Mapping[str, Sequence[Fault]]) -> None:
        """Replace all planned faults: those of the next requests of each path."""
        self._planned = {path: deque(sequence) for path, sequence in faults.items()}
        self.always = lambda _: Fault.NONE

    def _next(self, path: str) -> Fault:
        self.requests[path] += 1
        planned = self._planned.get(path)
        fault = planned.popleft() if planned else self.always(path)
        if fault is not Fault.NONE:
            self.injected.append(InjectedFault(time.monotonic(), path, fault))
        return fault

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of a client until either side closes it."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self._answer(reader, writer):
                pass

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection can take another."""
        request = await reader.readuntil(BLANK_LINE)
        fault = self._next(urlsplit(request.split(b" ", 2)[1].decode()).path)
        if fault is Fault.UNASKED and b"\r\nif-none-match:" not in request.lower():
            writer.write(b"HTTP/1.1 304 Not Modified\r\n\r\n")
            await writer.drain()
            return True
        if fault[:3].isdigit() and fault is not Fault.UNASKED:
            writer.write(_error_response(int(fault[:3]), fault[4:]))
            await writer.drain()
            return True
        if fault is Fault.SILENT:
            await reader.read()  # until the client closes the connection
            return False
        if fault is Fault.RESET:
            _reset(writer)
            return False
        head, body = await self._forward(request)
        if fault is Fault.WRONG_ETAG:
            head = ETAG.sub(b'\r\nETag: "%b"' % OTHER_MD5, head)
        if fault is Fault.SHORT:
            body = body[: len(body) // 2]
            head = CONTENT_LENGTH.sub(b"\r\nContent-Length: %d" % len(body), head)
        cut = fault in (Fault.STUCK, Fault.TRUNCATED, Fault.RESET_INSIDE)
        writer.write(head + (body[: len(body) // 2] if cut else body))
        await writer.drain()
        if fault is Fault.STUCK:
            await reader.read()
        elif fault is Fault.RESET_INSIDE:
            _reset(writer)
        return not cut

    async def _forward(self, request: bytes) -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        with closing(writer):
            writer.write(request)
            head = await reader.readuntil(BLANK_LINE)
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            bodiless = request.startswith(b"HEAD") or head.split(b" ")[1] == b"304"
            body = b"" if bodiless else await reader.readexactly(int(fields.get(b"content-length", 0)))
        return head, body


def _error_response(status: int, code: str) -> bytes:
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>injected fault</Message></Error>'
    )
    return (
        f"HTTP/1.1 {status} No\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with RST instead of FIN
    writer.transport.abort()


@contextmanager
def proxied(upstream: str) -> Iterator[Proxy]:
    """A proxy in front of the server at this endpoint."""
    proxy, loop, ready = Proxy(upstream), asyncio.new_event_loop(), threading.Event()

    async def run() -> None:
        connections = Connections(proxy.serve)
        server = await asyncio.start_server(connections.accept, "127.0.0.1", 0)
        proxy.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await ended.wait()
        server.close()
        await connections.end()

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), name="proxy")
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


MESSAGES = {
    "trying again",
    "dead-lettered",
    "a text could not be read",
    "a text could not be read, its candidates wait",
}
BY_MESSAGE, BY_END = "trying again, dead letter, text not read", "run failed"


def find_messages(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the lines of a log say of faults of the store; each names the page."""
    return [str(line.get("why")) for line in lines if line["event"] in MESSAGES]


def explain_faults(
    injected: Sequence[InjectedFault], lines: Iterable[Mapping[str, Any]], missing: AbstractSet[str], *, failed: bool
) -> list[tuple[Fault, int, Said]]:
    """Each kind of fault, how many there were, and what says so.

    The `lines` are those of the log, `missing` the paths of dead letters for missing pages, and `failed` the run.
    """
    messages, by_path = find_messages(lines), defaultdict[str, list[Fault]](list)
    for fault in injected:
        by_path[fault.path].append(fault.kind)
    said, unsaid = Counter[Fault](), Counter[Fault]()
    for path, faults in by_path.items():
        count = sum(path in message for message in messages) + (path in missing)
        said.update(faults[:count])
        unsaid.update(faults[count:])
    return [
        *((fault, n, Said(BY_MESSAGE, n)) for fault, n in said.items()),
        *((fault, n, Said(BY_END, n if failed else 0)) for fault, n in unsaid.items()),
    ]
