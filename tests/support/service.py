"""Runs `neardup run` and `neardup serve` as services: the process, systemd's notify socket and the HTTP endpoints; and
serves the HTTP API in the process of the test, over parts that the test opens.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_service_parts
from neardup.config import Config, Content, Ledger, Serve, Source
from neardup.errors import Transient
from neardup.serve.app import make_application
from neardup.serve.service import Service, ServiceParts
from neardup.serve.tokens import open_tokens

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


HttpClient = TestClient[web.Request, web.Application]


def configuration(folder: Path, **section: Any) -> Config:
    """An empty ledger, the SQLite index, and a folder of pages."""
    return Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}"),
        ledger=Ledger(path=folder / "neardup.db"),
        serve=Serve(**section),
    )


@asynccontextmanager
async def never_open(_: Config) -> AsyncIterator[ServiceParts]:
    """Parts that cannot be opened yet."""
    raise Transient("Redis does not answer")
    yield


@asynccontextmanager
async def http_service(
    config: Config, open_with: Any = open_service_parts
) -> AsyncIterator[tuple[HttpClient, asyncio.Event]]:
    """An HTTP client of a service whose parts are open, or wait to be opened, and the event that stops it."""
    stop, announced = asyncio.Event(), asyncio.Event()

    def open_parts() -> AbstractAsyncContextManager[ServiceParts]:
        context: AbstractAsyncContextManager[ServiceParts] = open_with(config)
        return context

    tokens = None if config.serve.tokens is None else open_tokens(config.serve.tokens)
    service = Service(config.serve, open_parts, tokens, stop, announce=lambda _: announced.set())
    opening = asyncio.create_task(service.keep_open())
    async with TestClient(TestServer(make_application(service))) as client:
        await announced.wait()
        yield client, stop
    await service.close()
    await opening


async def send(client: HttpClient, method: str, path: str, **body: Any) -> str:
    """What a request with this body is answered, as JSON."""
    async with client.request(method, path, json=body or None) as answer:
        text = await answer.text()
        assert answer.status == 200, f"{method} {path}: {text}"
        return text


async def problem_of(client: HttpClient, method: str, path: str, **request: Any) -> tuple[int, dict[str, Any]]:
    """The status of a request that is refused, and its problem."""
    async with client.request(method, path, **request) as answer:
        assert answer.content_type == "application/problem+json", await answer.text()
        problem: dict[str, Any] = await answer.json()
        assert problem["status"] == answer.status
        assert problem["request_id"] == answer.headers["X-Request-ID"]
        return answer.status, problem
