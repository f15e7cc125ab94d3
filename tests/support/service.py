"""Runs `neardup run` and `neardup serve` as services: the process, systemd's notify socket and the HTTP endpoints."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.support.command import Neardup
from tests.support.forked_command import ForkedProcess

TIMEOUT_SECONDS = 60


class Systemd:
    """Receives the notifications that the service sends to $NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(TIMEOUT_SECONDS)
        self.lines: list[str] = []

    def wait_for(self, word: str) -> str:
        """Wait for a line that contains `word` and return it; `lines` keeps all lines received."""
        while True:
            for line in self._socket.recv(4096).decode().splitlines():
                self.lines.append(line)
                if word in line:
                    return line

    def close(self) -> None:
        self._socket.close()


@contextmanager
def running(neardup: Neardup, listen: str, **env: str) -> Iterator[tuple[ForkedProcess, Systemd]]:
    systemd = Systemd(neardup.folder / "notify.sock")
    extra = {"NEARDUP_METRICS__LISTEN": listen, "NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "200000"}
    with neardup.start("run", env=extra | env) as process:
        try:
            yield process, systemd
        finally:
            process.kill()
            systemd.close()


@contextmanager
def serving(
    neardup: Neardup, listen: str, command: str = "serve", **env: str
) -> Iterator[tuple[ForkedProcess, Systemd, Path]]:
    """The HTTP service on HOST:PORT, by `serve` or `run`, ready for requests; yields its log as well."""
    notify, log = neardup.folder / "serve.sock", neardup.folder / "serve.log"
    notify.unlink(missing_ok=True)
    systemd = Systemd(notify)
    extra = {"NEARDUP_SERVE__LISTEN": listen, "NOTIFY_SOCKET": str(notify)}
    with log.open("ab") as stderr, neardup.start(command, errors=stderr, env=extra | env) as process:
        try:
            yield process, systemd, log
        finally:
            process.kill()
            systemd.close()


def get(listen: str, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{listen}/{path}") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()
