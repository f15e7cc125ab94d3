"""Small HTTP servers in the process of the test: of chosen bytes, one body, webhooks, embeddings, and Athena."""

import asyncio
import csv
import io
import json
import socketserver
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiohttp import web
from msgspec import Struct, field
from neardup.config import Content
from neardup.pages.store import Pages

from tests.support.servers import REGION, Aws, listening, serve_posts

BLANK_LINE = b"\r\n\r\n"


class RawServer(Struct):
    """The port of the server; `answer` is what it sends, and `requests` the heads that it received."""

    port: int
    answer: bytes = b""
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def raw_server() -> Iterator[RawServer]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while not head.endswith(BLANK_LINE):
                if not (line := self.rfile.readline()):
                    return
                head += line
            server.requests.append(head)
            self.wfile.write(server.answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        server = RawServer(listener.server_address[1])
        with listening(listener):
            yield server


KEY, SECRET_KEY, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3/+=="
BODY = "<p>राम अपने गाँव के पुराने स्कूल में".encode()


class Server(Struct):
    """The port of the server, and the path and headers of each request it received."""

    port: int
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if self.path.endswith("/after-a-hint"):
                self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nContent-Type: text/plain; charset=big5\r\n\r\n")
            self.send_response(200)
            self.send_header("ETag", '"e"')
            if self.path.endswith("/in-chunks"):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY))
            else:
                self.send_header("Content-Length", str(len(BODY)))
                self.end_headers()
                self.wfile.write(BODY)

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests free of access logs."""

    class Listener(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    listener = Listener(("127.0.0.1", 0), Handler)
    if context is not None:
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    server = Server(listener.server_port)
    with listener, listening(listener):
        yield server


@contextmanager
def with_keys() -> Iterator[Server]:
    """The server, with its credentials in the environment."""
    with serving() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        patch.setenv("AWS_SESSION_TOKEN", TOKEN)
        yield server


def content_of(endpoint: str, max_bytes: int = 1_000_000) -> Content:
    return Content(url="s3://stories/html", endpoint=endpoint, region=REGION, path_style=True, max_bytes=max_bytes)


def pages_of(server: Server, scheme: str = "http", max_bytes: int = 1_000_000) -> Pages:
    return Pages(content_of(f"{scheme}://localhost:{server.port}", max_bytes))


SECRET = "T0KEN"
Messages = list[tuple[bytes, dict[str, str]]]


@asynccontextmanager
async def webhook_server(*statuses: int, messages: Messages | None = None) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that answers with these statuses in turn; yields its URL and the list of the payloads received.

    Their bytes and headers are added to `messages`.
    """
    received: list[Any] = []
    messages = [] if messages is None else messages
    remaining = iter(statuses)

    async def hook(request: web.Request) -> web.Response:
        received.append(await request.json())
        messages.append((await request.read(), dict(request.headers)))
        return web.Response(status=next(remaining), headers={"Location": "/elsewhere"})

    async with serve_posts(hook, f"/{SECRET}") as url:
        yield url, received


Answer = Callable[[list[str]], web.Response]


def vector_of(text: str, dimensions: int = 8) -> list[float]:
    """A vector that depends on the text alone."""
    return [1.0 + (sum(text.encode()) * (n + 3)) % 17 for n in range(dimensions)]


def embeddings(texts: list[str], dimensions: int = 8) -> web.Response:
    """The right answer, in reverse: the index says which text a vector belongs to."""
    data = [{"index": n, "embedding": vector_of(text, dimensions)} for n, text in enumerate(texts)]
    return web.json_response({"object": "list", "data": data[::-1], "model": "test"})


def status(number: int) -> Answer:
    return lambda _: web.Response(status=number, text="busy")


def garbage(text: str) -> Answer:
    return lambda _: web.Response(text=text, content_type="application/json")


@asynccontextmanager
async def embeddings_server(*answers: Answer | None) -> AsyncIterator[tuple[str, list[Any]]]:
    """A server that gives these answers in turn, and right ones from then on; None is silence.

    Yields its URL and the list of the requests received, each a body and its headers.
    """
    received: list[Any] = []
    remaining = iter(answers)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        received.append((body, dict(request.headers)))
        give = next(remaining, embeddings)
        if give is None:
            await asyncio.Event().wait()
        assert give is not None
        return give(body["input"])

    async with serve_posts(answer, "/v1/embeddings", shutdown_seconds=0.1) as url:
        yield url, received


ROWS = [
    {
        "id": str(n),
        "language": "hi",
        "title": f'शीर्षक, "{n}"\nदूसरी पंक्ति',
        "updated_at": f"2026-11-{n % 28 + 1:02} 10:00:00.000",
    }
    for n in range(500)
]


class AthenaStub:
    """Answers StartQueryExecution and GetQueryExecution as Athena does.

    The attributes set the outcome of the queries: `ends` is their final state, `throttled` the number of calls that are
    throttled first, and `failed` the executions that fail.
    """

    def __init__(self, aws: Aws) -> None:
        self._s3 = aws.client("s3")
        self.queries: dict[str, dict[str, Any]] = {}
        self.rows: list[dict[str, str]] = ROWS
        self.columns = list(ROWS[0])
        self.ends = "SUCCEEDED"
        self.reason = ""
        self.retryable = False
        self.throttled = 0
        self.failed: set[str] = set()

    async def answer(self, request: web.Request) -> web.Response:
        call = request.headers["X-Amz-Target"].partition(".")[2]
        call_arguments = json.loads(await request.read())
        if self.throttled:
            self.throttled -= 1
            body = {"__type": "TooManyRequestsException", "message": "slow down"}
            return self._json(body, 400)
        if call == "StartQueryExecution":
            execution_id = f"query-{len(self.queries)}"
            self.queries[execution_id] = call_arguments | {"polls": 0}
            return self._json({"QueryExecutionId": execution_id})
        execution_id = call_arguments["QueryExecutionId"]
        if execution_id not in self.queries:
            return self._json({"__type": "InvalidRequestException", "message": "QueryExecution was not found"}, 400)
        query = self.queries[execution_id]
        query["polls"] += 1
        state = ("QUEUED", "RUNNING", self.ends)[min(query["polls"], 3) - 1]
        if execution_id in self.failed:
            state = "FAILED"
        location = f"{query['ResultConfiguration']['OutputLocation']}{execution_id}.csv"
        if state == "SUCCEEDED" and query["polls"] == 3:
            self._s3.put_object(Bucket="results", Key=location.removeprefix("s3://results/"), Body=self._csv(query))
        status = {"State": state, "StateChangeReason": self.reason, "AthenaError": {"Retryable": self.retryable}}
        return self._json(
            {
                "QueryExecution": {
                    "QueryExecutionId": execution_id,
                    "Status": status,
                    "ResultConfiguration": {"OutputLocation": location},
                }
            }
        )

    def _csv(self, query: dict[str, Any]) -> bytes:
        rows = self.rows
        if parameters := query.get("ExecutionParameters"):
            [since] = parameters
            assert since[0] == since[-1] == "'", f"Athena would read {since} as a column name"
            rows = [row for row in rows if row["updated_at"] >= since[1:24].replace("T", " ")]
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([row[column] for column in self.columns if column in row] for row in rows)
        return out.getvalue().encode()

    def _json(self, body: object, status: int = 200) -> web.Response:
        return web.json_response(body, status=status, content_type="application/x-amz-json-1.1")
