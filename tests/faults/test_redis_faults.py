"""Whatever becomes of Redis during a run, the run waits, says so, goes on by itself, and nothing is lost."""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest.mock import AsyncMock

import pytest
import stamina
from neardup.errors import Transient
from neardup.ledger import Ledger
from neardup.pipeline.index_wait import IndexWait
from structlog.testing import capture_logs

from tests.support.faults.command_driver import At, Driver, Started
from tests.support.faults.command_sequence import Life
from tests.support.faults.consistency import State, state_of
from tests.support.faults.cutting_proxy import cutting
from tests.support.faults.fault_table import CHAOS, Row
from tests.support.faults.kill_campaign import undisturbed
from tests.support.faults.redis_faults import FAULTS, Box, Fault, OtherPassword, Slow
from tests.support.servers import free_port
from tests.support.service import Systemd, get

LAYOUTS = ("documented", "compact")
CUTS = 12 * min(CHAOS, 2)
MIDWAY: tuple[At, ...] = tuple(
    {"point": point, "nth": 2, "signal": "SIGSTOP"} for point in ("before look up", "after commit", "before index")
)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path / "redis")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def calm(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> State:
    """After a backfill and a daily run that nothing happened to, without Redis."""
    folder = tmp_path_factory.mktemp("calm")
    return undisturbed(driver, folder / "life", "sqlite", "", fresh=False).states["daily"]


class Run:
    """A run that is stopped midway, and what it tells the world; to be used in a `with`."""

    def __init__(self, life: Life, at: At, command: str = "daily", **more: str) -> None:
        self.life = life
        self.listen = f"127.0.0.1:{free_port()}"
        (life.folder / "notify.sock").unlink(missing_ok=True)
        self.systemd = Systemd(life.folder / "notify.sock")
        env = {"NEARDUP_METRICS__LISTEN": self.listen, "NOTIFY_SOCKET": str(self.systemd.path)}
        self.process: Started = life.start(command, at=at, **env, **more)
        assert self.process.wait() is None, f"{at} is not reached: {self.process.said()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.systemd.close()

    def metric(self, line: str) -> float:
        _, text = get(self.listen, "metrics")
        return float(next(one for one in text.splitlines() if one.startswith(f"{line} ")).rpartition(" ")[2])


@dataclass(frozen=True)
class Stage:
    """Where a test plays: lives that have had a backfill, and what a daily run is to make of them."""

    driver: Driver
    folder: Path
    calm: State
    tell: Callable[[Row], None]

    def backfilled(self, layout: str, url: str) -> Life:
        life = Life(self.driver, self.folder / "life", layout, url)
        first = life.start("backfill")
        assert first.wait() == 0, first.said()
        life.edit_all_sorts()
        return life

    def in_flight(self, life: Life) -> int:
        return len(set(self.calm["stories"]) - set(state_of(life.ledger)["stories"]))

    def assert_as_if_nothing_had_happened(self, life: Life) -> None:
        faults = life.faults(self.calm)
        assert faults == [], "\n".join(faults[:20])
        assert status_of(life)["index"]["lag"] == 0


@pytest.fixture
def stage(driver: Driver, tmp_path: Path, calm: State, tell: Callable[[Row], None]) -> Stage:
    return Stage(driver, tmp_path, calm, tell)


def status_of(life: Life) -> dict[str, Any]:
    asked = life.start("status", "--json")
    assert asked.wait() == 0, asked.said()
    return asked.facts()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("layout", LAYOUTS if CHAOS > 1 else LAYOUTS[:1])
def test_a_run_waits_for_a_redis_that_fails_says_so_and_goes_on(
    fault: type[Fault], layout: str, box: Box, stage: Stage
) -> None:
    trouble, life = fault(), stage.backfilled(layout, box.url)
    trouble.prepare(box)
    with Run(life, MIDWAY[FAULTS.index(fault) % len(MIDWAY)]) as run:
        flying = stage.in_flight(life)
        trouble.strike(box)
        run.process.go_on()
        # a connection cut in a message may be told first
        assert run.systemd.wait_for(trouble.said).startswith("STATUS=waiting for the index")
        assert run.metric('neardup_waiting{what="index"}') == 1
        waiting = status_of(life)["waiting"]
        assert trouble.said in waiting["why"]
        if CHAOS > 1 and fault is Slow:
            assert "nothing within 30" in run.systemd.wait_for("Redis does not answer")
        trouble.mend(box)
        began = time.monotonic()
        run.systemd.wait_for("STATUS=the index answers again")
        took = time.monotonic() - began
        assert run.process.wait() == 0, run.process.said()
    told = [line for line in run.process.said().splitlines() if '"event": "waiting"' in line]
    assert len(told) == 1, f"once, and not at each attempt: {told}"
    stage.assert_as_if_nothing_had_happened(life)
    stage.tell(Row(f"Redis: {fault.told}", 1, flying, 0, 0, (took,)))


async def test_a_wait_is_told_once_however_often_and_by_how_many_it_is_tried(tmp_path: Path) -> None:
    ledger, well = Ledger(tmp_path / "neardup.db"), asyncio.Event()
    wait = IndexWait(ledger)

    async def waiting(tries: int) -> None:
        failures = [Transient("it is away")] * tries

        async def call() -> None:
            if failures:
                raise failures.pop()
            await well.wait()

        await wait.until_answered("look_up", call)

    with stamina.set_testing(True, attempts=5), capture_logs() as lines:
        several = [asyncio.create_task(waiting(tries)) for tries in (1, 2, 3)]
        while wait.status is None:
            await asyncio.to_thread(ledger.path.stat)
        await wait.until_answered("index", ready := AsyncMock())
        assert ready.await_count == 1
        assert wait.status is not None, "one that never waited ends nobody's wait"
        well.set()
        await asyncio.gather(*several)
    ledger.close()
    assert wait.status is None
    assert [line["event"] for line in lines if "wait" in line["event"]] == ["waiting", "no longer waiting"]


def test_the_daemon_waits_too_and_is_unhealthy_meanwhile(box: Box, stage: Stage) -> None:
    life, trouble = stage.backfilled("documented", box.url), OtherPassword()
    with Run(life, MIDWAY[0], "run") as run:
        trouble.strike(box)
        run.process.go_on()
        run.systemd.wait_for(trouble.said)
        status, body = get(run.listen, "healthz")
        assert status == 503
        assert trouble.said in json.loads(body)["doing"]
        trouble.mend(box)
        run.systemd.wait_for("STATUS=next run at")
        assert get(run.listen, "healthz")[0] == 200
        assert run.metric("neardup_index_lag") == run.metric('neardup_waiting{what="index"}') == 0
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.process.wait() == 0, run.process.said()
    stage.assert_as_if_nothing_had_happened(life)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_connections_cut_in_the_middle_of_a_pipeline(layout: str, box: Box, stage: Stage) -> None:
    chance = random.Random(layout)
    life = stage.backfilled(layout, box.url)
    budgets = [int(10 ** chance.uniform(1.5, 4.0)) * chance.choice((1, -1)) for _ in range(CUTS)]
    with cutting(box.url.removeprefix("unix://")) as way, Run(life, MIDWAY[0], NEARDUP_INDEX__URL=way.url) as run:
        flying = stage.in_flight(life)
        way.begin(budgets)
        began = time.monotonic()
        run.process.go_on()
        assert run.process.wait() == 0, run.process.said()
        took = time.monotonic() - began
    stage.assert_as_if_nothing_had_happened(life)
    assert way.cuts > CUTS // 6, "some are to hit"
    stage.tell(Row("Redis: connection cut in a message", way.cuts, flying, 0, 0, (took,)))
