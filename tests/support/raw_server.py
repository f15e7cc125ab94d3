"""An HTTP server that answers each request with chosen bytes, and closes the connection."""

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from tests.support.servers import listening

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
