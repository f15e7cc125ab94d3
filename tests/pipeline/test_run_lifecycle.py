"""The life cycle of runs and sweeps: what is recorded after each way in which work can end."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from neardup.errors import Fatal, Transient
from neardup.ledger import Ledger, lock, runs
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Summary
from neardup.telemetry.metrics import RUNNING
from structlog.testing import capture_logs

from tests.support.jobs import MARK, done, failures, forever, latest, run_job


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "neardup.db")) as opened:
        yield opened


async def test_the_start_of_a_run_is_one_log_line(ledger: Ledger) -> None:
    with capture_logs() as lines:
        await run_job(ledger, done)
    [line] = [line for line in lines if line["event"] == "run started"]
    assert (line["command"], line["version"], line["stories"]) == ("daily", "1.2.3", 3)


@pytest.mark.parametrize("error", [Fatal("no such store"), ValueError("a defect"), asyncio.CancelledError()])
async def test_failed_work_is_recorded_and_calls_no_hook(ledger: Ledger, error: BaseException) -> None:
    called: list[Summary] = []

    async def call(summary: Summary) -> None:
        called.append(summary)

    async def fail() -> bool:
        raise error

    before = failures()
    with pytest.raises(type(error)) as raised:
        await run_job(ledger, fail, Hook("export", call))
    assert raised.value is error
    run = await latest(ledger)
    assert (run["status"], run["counts"]["fingerprinted"]) == ("failed", 7)
    assert run["error"] == (str(error) if isinstance(error, Fatal) else repr(error))
    assert getattr(error, "run", run["run_id"]) == run["run_id"], "the error must name its run"
    assert (called, await ledger.do(runs.watermark)) == ([], None)
    assert (failures(), RUNNING.labels("daily")._value.get()) == (before + 1, 0)
    with lock.only_one(ledger.path, "daily"):
        pass  # raises if the lock was not released


async def test_the_first_error_of_failed_stages_is_raised(ledger: Ledger) -> None:
    async def full() -> None:
        raise Fatal("the disk is full")

    async def fail() -> bool:
        async with asyncio.TaskGroup() as outer:
            outer.create_task(forever())
            async with asyncio.TaskGroup() as inner:
                inner.create_task(full())
        return True

    with pytest.raises(Fatal, match="the disk is full"):
        await run_job(ledger, fail)
    assert (await latest(ledger))["error"] == "the disk is full"


async def test_work_is_stopped_when_its_grace_period_is_over(ledger: Ledger) -> None:
    stop = asyncio.Event()
    stop.set()
    summary = await run_job(ledger, forever, stop=stop, shutdown_seconds=0.01)
    assert summary.status == (await latest(ledger))["status"] == "stopped"
    assert await ledger.do(runs.watermark) is None


async def test_a_run_cancelled_in_its_work_has_failed(ledger: Ledger) -> None:
    begun = asyncio.Event()

    async def work() -> bool:
        begun.set()
        return await forever()

    running = asyncio.create_task(run_job(ledger, work))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await latest(ledger))["status"] == "failed"
    assert await ledger.do(runs.watermark) is None


async def test_a_run_cancelled_in_its_last_commit_stays_done(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, begun, proceed, finish = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), runs.finish

    def slow(*args: Any, **kwargs: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        proceed.wait()
        finish(*args, **kwargs)

    monkeypatch.setattr(runs, "finish", slow)
    running = asyncio.create_task(run_job(ledger, done))
    await begun.wait()
    running.cancel()
    proceed.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    run = await latest(ledger)
    assert (run["status"], run["error"]) == ("done", None), "a commit cannot be cancelled, so the run is done"
    assert await ledger.do(runs.watermark) == MARK


async def test_a_run_that_cannot_get_the_lock_is_not_recorded(ledger: Ledger) -> None:
    with lock.only_one(ledger.path, "reindex"), pytest.raises(Transient, match="neardup reindex"):
        await run_job(ledger, done)
    assert await ledger.do(runs.latest, 1) == []
