"""A small object store in its own process: path-style S3 GET and HEAD over HTTP, from memory.

`python -m tests.support.s3_server FOLDER BUCKET SECONDS` serves FOLDER's files as /BUCKET/<path>, each after so many
seconds, prints its port, and runs until it is terminated.  It does not check signatures.  Another module may serve
objects that it makes when they are asked for.
"""

import asyncio
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self, cast
from urllib.parse import unquote, urlsplit

import click
import uvloop
from msgspec import Struct

BLANK_LINE = b"\r\n\r\n"
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
LAST_MODIFIED = "Thu, 01 Jan 2026 00:00:00 GMT"
REASONS = {
    200: "OK",
    206: "Partial Content",
    304: "Not Modified",
    404: "Not Found",
    405: "Method Not Allowed",
    416: "Range Not Satisfiable",
}
Response = tuple[bytes, bytes]  # head, body


class StoredObject(Struct, frozen=True):
    """An object's bytes and its quoted ETag."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes) -> Self:
        return cls(body, f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"')


Find = Callable[[str], StoredObject | None]  # the object of a URL path


def load(folder: Path, bucket: str) -> dict[str, StoredObject]:
    """All files below `folder` by their URL paths."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"/{bucket}/{path.relative_to(folder).as_posix()}": StoredObject.of(path.read_bytes()) for path in files}


def respond(find: Find, request: bytes) -> Response:
    """The head of a request -> the head and the body of the response."""
    line, *fields = request.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if method not in ("GET", "HEAD"):
        return _error(405, "MethodNotAllowed")
    found = find(unquote(urlsplit(target).path))
    if found is None:
        return _error(404, "NoSuchKey")
    head, body = _read(found, headers)
    return head, b"" if method == "HEAD" else body


def _read(found: StoredObject, headers: Mapping[str, str]) -> Response:
    common = f"ETag: {found.etag}\r\nLast-Modified: {LAST_MODIFIED}\r\nAccept-Ranges: bytes\r\n"
    if headers.get("if-none-match") in (found.etag, "*"):
        return _head(304, common), b""
    common += "Content-Type: text/html\r\n"
    requested = RANGE.fullmatch(headers.get("range", ""))
    if requested is None:
        return _head(200, f"{common}Content-Length: {len(found.body)}\r\n"), found.body
    size = len(found.body)
    start, end = _byte_range(requested[1], requested[2], size)
    if start >= end:
        return _error(416, "InvalidRange")
    common += f"Content-Range: bytes {start}-{end - 1}/{size}\r\nContent-Length: {end - start}\r\n"
    return _head(206, common), found.body[start:end]


def _byte_range(first: str, last: str, size: int) -> tuple[int, int]:
    """`first-last`, `first-` or `-length` of a Range header -> start and exclusive end."""
    if not first:
        return max(size - int(last or 0), 0), size
    return int(first), min(int(last) + 1, size) if last else size


def _error(status: int, code: str) -> Response:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code></Error>'.encode()
    return _head(status, f"Content-Type: application/xml\r\nContent-Length: {len(body)}\r\n"), body


def _head(status: int, fields: str) -> bytes:
    return f"HTTP/1.1 {status} {REASONS[status]}\r\n{fields}\r\n".encode("latin-1")


class Connection(asyncio.Protocol):
    """The keep-alive connection of one client."""

    def __init__(self, find: Find, delay: float) -> None:
        self._find = find
        self._delay = delay
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *requests, self._unread = (self._unread + data).split(BLANK_LINE)
        for request in requests:
            if self._delay:
                asyncio.get_running_loop().call_later(self._delay, self._answer, request)
            else:
                self._answer(request)

    def _answer(self, request: bytes) -> None:
        self._transport.writelines(respond(self._find, request))


def serve(find: Find, delay: float = 0) -> None:
    """Serve on a free port of the loopback interface, and print the port."""

    async def serve_forever() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Connection(find, delay), "127.0.0.1", 0)
        click.echo(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_forever())


@contextmanager
def object_server(folder: Path, bucket: str, delay: float = 0) -> Iterator[str]:
    """Serve a folder in a process of its own, with this latency in seconds; yields its endpoint."""
    with served_by(__spec__.name, folder, bucket, delay) as endpoint:
        yield endpoint


@contextmanager
def served_by(module: str, *arguments: object) -> Iterator[str]:
    """Run a module that calls `serve` in a process of its own; yields its endpoint."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise RuntimeError("the object server did not start")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


if __name__ == "__main__":
    serve(load(Path(sys.argv[1]), sys.argv[2]).get, float(sys.argv[3]))
