"""The life cycle of runs and sweeps: what is recorded after each way in which work can end, and the hooks after it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from neardup import __version__
from neardup.errors import Fatal, Transient
from neardup.ledger import Ledger, lock, runs
from neardup.pipeline import run_lifecycle
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Summary
from neardup.telemetry.metrics import RUNNING
from structlog.testing import capture_logs

from tests.support.jobs import MARK, done, failing, failures, forever, latest, nothing, run_job


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "neardup.db")) as opened:
        yield opened


async def test_the_start_of_a_run_is_one_log_line(ledger: Ledger) -> None:
    with capture_logs() as lines:
        await run_job(ledger, done)
    [line] = [line for line in lines if line["event"] == "run started"]
    assert (line["command"], line["version"], line["stories"]) == ("daily", __version__, 3)


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
    assert (called, await ledger.do(runs.read_watermark)) == ([], None)
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
    assert await ledger.do(runs.read_watermark) is None


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
    assert await ledger.do(runs.read_watermark) is None


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
    assert await ledger.do(runs.read_watermark) == MARK


async def test_a_run_waits_for_the_service_in_its_own_process(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, loop = asyncio.Event(), asyncio.get_running_loop()
    pause = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: loop.call_soon_threadsafe(waits.set))
    monkeypatch.setattr(lock, "time", pause)
    with lock.only_one(ledger.path, lock.SERVE):
        running = asyncio.create_task(run_job(ledger, done))
        await waits.wait()
    await running
    assert (await latest(ledger))["status"] == "done"


async def test_a_run_that_cannot_get_the_lock_is_not_recorded(ledger: Ledger) -> None:
    with lock.only_one(ledger.path, "reindex"), pytest.raises(Transient, match="neardup reindex"):
        await run_job(ledger, done)
    assert await ledger.do(runs.list_latest, 1) == []


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Fatal("cannot write /x: Not a directory"), "cannot write /x: Not a directory"),
        (Transient("the index does not answer"), "the index does not answer"),
        (TimeoutError(), "TimeoutError: "),
        (KeyError("kind"), "KeyError: 'kind'"),
    ],
)
async def test_a_failing_hook_is_one_warning_on_a_done_run(ledger: Ledger, error: Exception, why: str) -> None:
    recorded: list[tuple[str, str, dict[str, str]]] = []

    async def observe(summary: Summary) -> None:
        run = await latest(ledger)
        recorded.append((run["status"], summary.status, dict(summary.warnings)))

    before = failures()
    with capture_logs() as lines:
        summary = await run_job(
            ledger, done, Hook("first", observe), Hook("export", failing(error)), Hook("last", observe)
        )
    assert (summary.status, summary.warnings) == ("done", {"export": why})
    assert recorded == [("done", "done", {}), ("done", "done", {"export": why})], (
        "hooks must be called after the outcome is recorded"
    )
    assert [line["hook"] for line in lines if line["log_level"] == "warning"] == ["export"]
    run = await latest(ledger)
    assert (run["status"], run["error"], run["counts"]["fingerprinted"]) == ("done", None, 7)
    assert run["counts"]["warnings"] == {"export": why}
    assert await ledger.do(runs.read_watermark) == MARK, "a failed hook must not change the watermark"
    assert failures() == before


async def test_successful_hooks_record_no_warning(ledger: Ledger) -> None:
    summary = await run_job(ledger, done, Hook("export", nothing))
    assert summary.warnings == {}
    assert "warnings" not in (await latest(ledger))["counts"]


async def test_after_a_stop_only_vital_hooks_are_called(ledger: Ledger) -> None:
    called: list[str] = []

    def hook(name: str, *, vital: bool) -> Hook:
        async def call(_: Summary) -> None:
            called.append(name)

        return Hook(name, call, vital)

    stop = asyncio.Event()
    stop.set()
    await run_job(ledger, done, hook("export", vital=True), hook("webhook", vital=False), stop=stop)
    assert called == ["export"]


async def test_a_stop_does_not_wait_for_a_slow_hook(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lifecycle, "GRACE_SECONDS", 0.01)
    stop = asyncio.Event()

    async def slow(_: Summary) -> None:
        stop.set()
        await forever()

    summary = await run_job(ledger, done, Hook("export", slow), stop=stop)
    assert summary.status == "done", "the run had ended before the hook"
    assert list(summary.warnings) == ["export"]
    assert await ledger.do(runs.read_watermark) == MARK


async def test_a_run_cancelled_in_a_hook_stays_done(ledger: Ledger) -> None:
    begun = asyncio.Event()

    async def slow(_: Summary) -> None:
        begun.set()
        await forever()

    running = asyncio.create_task(run_job(ledger, done, Hook("export", slow)))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await latest(ledger))["status"] == "done"
    assert await ledger.do(runs.read_watermark) == MARK
