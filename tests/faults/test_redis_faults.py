"""A run waits for a Redis that fails, reports that it waits, resumes by itself, and loses nothing."""

import asyncio
import json
import os
import random
import signal
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from unittest.mock import AsyncMock

import pytest
import stamina
from msgspec import Struct
from neardup.errors import Transient
from neardup.ledger import Ledger
from neardup.pipeline.index_sync import IndexWait
from structlog.testing import capture_logs

from tests.support.faults.command_driver import Deployment, Driver, StartedCommand, StopPoint
from tests.support.faults.consistency import State, state_of
from tests.support.faults.fault_table import Row, Said, find_said, make_row
from tests.support.faults.kill_campaign import run_undisturbed
from tests.support.faults.redis_faults import FAULTS, Fault, Hanging, OtherPassword, RedisServer
from tests.support.sampling import CHAOS
from tests.support.servers import free_port
from tests.support.service import Systemd, get

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


LAYOUTS = ("documented", "compact")
CUTS = 12 * min(CHAOS, 2)
MIDWAY: tuple[StopPoint, ...] = tuple(
    {"point": point, "nth": 2, "signal": "SIGSTOP"} for point in ("before look up", "after commit", "before index")
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def reference_state(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state after an undisturbed backfill and daily run, without Redis."""
    folder = tmp_path_factory.mktemp("reference")
    return run_undisturbed(driver, folder / "deployment", "sqlite", "", fresh=False).states["daily"]


class Run:
    """A run that is stopped midway, with its systemd notifications and metrics; a context manager."""

    def __init__(self, deployment: Deployment, at: StopPoint, command: str = "daily", **extra_env: str) -> None:
        self.deployment = deployment
        self.listen = f"127.0.0.1:{free_port()}"
        (deployment.folder / "notify.sock").unlink(missing_ok=True)
        self.systemd = Systemd(deployment.folder / "notify.sock")
        env = {"NEARDUP_METRICS__LISTEN": self.listen, "NOTIFY_SOCKET": str(self.systemd.path)}
        self.process: StartedCommand = deployment.start(command, at=at, **env, **extra_env)
        assert self.process.wait() is None, f"{at} was not reached: {self.process.stderr()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.systemd.close()

    def metric(self, line: str) -> float:
        _, text = get(self.listen, "metrics")
        return float(
            next(text_line for text_line in text.splitlines() if text_line.startswith(f"{line} ")).rpartition(" ")[2]
        )


class Stage(Struct, frozen=True):
    """Creates deployments after a backfill, and compares them after a daily run with the undisturbed state."""

    driver: Driver
    folder: Path
    reference: State
    record_row: Callable[[Row], None]

    def backfilled(self, layout: str, url: str) -> Deployment:
        deployment = Deployment(self.driver, self.folder / "deployment", layout, url)
        first = deployment.start("backfill")
        assert first.wait() == 0, first.stderr()
        deployment.edit_stories()
        return deployment

    def in_flight(self, deployment: Deployment) -> int:
        return len(set(self.reference["stories"]) - set(state_of(deployment.ledger)["stories"]))

    def assert_undisturbed(self, deployment: Deployment) -> None:
        faults = deployment.faults(self.reference)
        assert faults == [], "\n".join(faults[:20])
        assert status_of(deployment)["index"]["lag"] == 0


@pytest.fixture
def stage(driver: Driver, tmp_path: Path, reference_state: State, record_row: Callable[[Row], None]) -> Stage:
    return Stage(driver, tmp_path, reference_state, record_row)


def status_of(deployment: Deployment) -> dict[str, Any]:
    status = deployment.start("status", "--json")
    assert status.wait() == 0, status.stderr()
    return status.facts()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("layout", LAYOUTS if CHAOS > 1 else LAYOUTS[:1])
def test_a_run_waits_for_redis_and_resumes(fault: type[Fault], layout: str, server: RedisServer, stage: Stage) -> None:
    trouble, deployment = fault(), stage.backfilled(layout, server.url)
    trouble.prepare(server)
    with Run(deployment, MIDWAY[FAULTS.index(fault) % len(MIDWAY)]) as run:
        in_flight = stage.in_flight(deployment)
        trouble.inject(server)
        run.process.resume()
        # a cut connection may be reported first
        assert run.systemd.wait_for(trouble.wait_reason).startswith("STATUS=waiting for the index")
        assert run.metric('neardup_waiting{what="index"}') == 1
        waiting = status_of(deployment)["waiting"]
        assert trouble.wait_reason in waiting["why"]
        if CHAOS > 1 and fault is Hanging:
            assert "nothing within 30" in run.systemd.wait_for("Redis does not answer")
        trouble.repair(server)
        began = time.monotonic()
        run.systemd.wait_for("STATUS=the index answers again")
        seconds = time.monotonic() - began
        assert run.process.wait() == 0, run.process.stderr()
    waits = [line for line in run.process.stderr().splitlines() if '"event": "waiting"' in line]
    assert len(waits) == 1, f"a wait is logged once, not at each attempt: {waits}"
    stage.assert_undisturbed(deployment)
    said = Said("waiting", len(waits))
    stage.record_row(make_row(f"Redis: {fault.label}", 1, said, in_flight=in_flight, seconds=(seconds,)))


async def test_a_wait_is_logged_once_for_all_attempts(tmp_path: Path) -> None:
    ledger, recovered = Ledger(tmp_path / "neardup.db"), asyncio.Event()
    wait = IndexWait(ledger)

    async def waiting(tries: int) -> None:
        failures = [Transient("Redis is down")] * tries

        async def call() -> None:
            if failures:
                raise failures.pop()
            await recovered.wait()

        await wait.wait_for_answer("look_up", call)

    with stamina.set_testing(True, attempts=5), capture_logs() as lines:
        waiters = [asyncio.create_task(waiting(tries)) for tries in (1, 2, 3)]
        while wait.status is None:
            await asyncio.to_thread(ledger.path.stat)
        await wait.wait_for_answer("index", ready := AsyncMock())
        assert ready.await_count == 1
        assert wait.status is not None, "a call that did not wait ended the wait of the others"
        recovered.set()
        await asyncio.gather(*waiters)
    ledger.close()
    assert wait.status is None
    assert [line["event"] for line in lines if "wait" in line["event"]] == ["waiting", "no longer waiting"]


def test_the_daemon_waits_and_is_unhealthy_meanwhile(server: RedisServer, stage: Stage) -> None:
    deployment, trouble = stage.backfilled("documented", server.url), OtherPassword()
    with Run(deployment, MIDWAY[0], "run") as run:
        trouble.inject(server)
        run.process.resume()
        run.systemd.wait_for(trouble.wait_reason)
        status, body = get(run.listen, "healthz")
        assert status == 503
        assert trouble.wait_reason in json.loads(body)["doing"]
        trouble.repair(server)
        run.systemd.wait_for("STATUS=next run at")
        assert get(run.listen, "healthz")[0] == 200
        assert run.metric("neardup_index_lag") == run.metric('neardup_waiting{what="index"}') == 0
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.process.wait() == 0, run.process.stderr()
    stage.assert_undisturbed(deployment)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_connections_lose_nothing(layout: str, server: RedisServer, stage: Stage) -> None:
    rng = random.Random(layout)
    deployment = stage.backfilled(layout, server.url)
    budgets = [int(10 ** rng.uniform(1.5, 4.0)) * rng.choice((1, -1)) for _ in range(CUTS)]
    with (
        cutting(server.url.removeprefix("unix://")) as proxy,
        Run(deployment, MIDWAY[0], NEARDUP_INDEX__URL=proxy.url) as run,
    ):
        in_flight = stage.in_flight(deployment)
        proxy.cut_connections(budgets)
        began = time.monotonic()
        run.process.resume()
        assert run.process.wait() == 0, run.process.stderr()
        seconds = time.monotonic() - began
    stage.assert_undisturbed(deployment)
    assert proxy.cuts > CUTS // 6, "too few connections were cut"
    said = find_said("waiting", run.process.stderr(), proxy.cuts)
    scenario = "Redis: connection cut within a command"
    stage.record_row(make_row(scenario, proxy.cuts, said, in_flight=in_flight, seconds=(seconds,)))
