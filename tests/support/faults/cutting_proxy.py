"""A TCP proxy that cuts connections in the middle of the data sent."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 65536


class Cutter(socketserver.ThreadingTCPServer):
    """Passes bytes on to a unix socket and back, and ends a connection after as many bytes as `budgets` says next.

    Negative ones are counted on the way back.  When there are no more, connections live.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Cut)
        self.target = target
        self.lock = threading.Lock()
        self.budgets: list[int] = []
        self.cuts = 0
        self.live: list[socket.socket] = []

    def begin(self, budgets: list[int]) -> None:
        """End the connections that live, and those that come as they are told."""
        with self.lock:
            self.budgets, ending, self.live = budgets, self.live, []
        for one in ending:
            end(one)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.server_address[1]}"


class _Cut(socketserver.BaseRequestHandler):
    server: Cutter

    def handle(self) -> None:
        with self.server.lock:
            budget = self.server.budgets.pop(0) if self.server.budgets else None
            self.server.live.append(self.request)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(self.server.target)
            there = None if budget is None or budget < 0 else budget
            back = None if budget is None or budget >= 0 else -budget
            answering = threading.Thread(target=self._pass, args=(other, self.request, back), daemon=True)
            answering.start()
            self._pass(self.request, other, there)
            answering.join()

    def _pass(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        left = CHUNK if budget is None else budget
        with suppress(OSError):
            while left and (data := source.recv(min(left, CHUNK))):
                sink.sendall(data)
                left -= len(data) if budget is not None else 0
            if not left:
                with self.server.lock:
                    self.server.cuts += 1
        end(source)
        end(sink)


def end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(target: str) -> Iterator[Cutter]:
    with Cutter(target) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
