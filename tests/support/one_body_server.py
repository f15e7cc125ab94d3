"""An HTTP server that answers every request with the same body, and S3 settings that use it."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from msgspec import Struct, field
from neardup.config import Content
from neardup.pages.store import Pages

from tests.support.servers import REGION, listening

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "IQoJb3/+=="
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
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_SESSION_TOKEN", TOKEN)
        yield server


def content_of(endpoint: str, max_bytes: int = 1_000_000) -> Content:
    return Content(url="s3://stories/html", endpoint=endpoint, region=REGION, path_style=True, max_bytes=max_bytes)


def pages_of(server: Server, scheme: str = "http", max_bytes: int = 1_000_000) -> Pages:
    return Pages(content_of(f"{scheme}://localhost:{server.port}", max_bytes))
