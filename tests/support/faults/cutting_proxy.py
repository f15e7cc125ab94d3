"""A TCP proxy that cuts connections in the middle of a transfer."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 65536


class CuttingProxy(socketserver.ThreadingTCPServer):
    """Forwards connections to a unix socket; each connection takes the next budget and is cut after so many bytes.

    A positive budget counts the bytes to the target, a negative one those from it.  Connections that find no budget
    left are never cut.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.target = target
        self.lock = threading.Lock()
        self.budgets: list[int] = []
        self.cuts = 0
        self.open: list[socket.socket] = []

    def cut_connections(self, budgets: list[int]) -> None:
        """Close the open connections, and give new ones these budgets."""
        with self.lock:
            self.budgets, closing, self.open = budgets, self.open, []
        for connection in closing:
            shut_down(connection)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.server_address[1]}"


class _Connection(socketserver.BaseRequestHandler):
    server: CuttingProxy

    def handle(self) -> None:
        with self.server.lock:
            budget = self.server.budgets.pop(0) if self.server.budgets else None
            self.server.open.append(self.request)
        with socket.socket(socket.AF_UNIX) as target:
            target.connect(self.server.target)
            to_target = None if budget is None or budget < 0 else budget
            from_target = None if budget is None or budget >= 0 else -budget
            replies = threading.Thread(target=self._forward, args=(target, self.request, from_target), daemon=True)
            replies.start()
            self._forward(self.request, target, to_target)
            replies.join()

    def _forward(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        left = CHUNK if budget is None else budget
        with suppress(OSError):
            while left and (data := source.recv(min(left, CHUNK))):
                sink.sendall(data)
                left -= len(data) if budget is not None else 0
            if not left:
                with self.server.lock:
                    self.server.cuts += 1
        shut_down(source)
        shut_down(sink)


def shut_down(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(target: str) -> Iterator[CuttingProxy]:
    with CuttingProxy(target) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
