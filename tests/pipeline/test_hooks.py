"""Hooks are called after a run is on record, and change nothing of it: a failure is a warning."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.errors import Fatal, Transient
from neardup.ledger import Ledger, runs
from neardup.pipeline import run_lifecycle as hooks_module
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Summary
from structlog.testing import capture_logs

from tests.support.jobs import MARK, done, failing, failures, forever, latest, nothing, run_job


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path / "neardup.db")) as opened:
        yield opened


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
    assert await ledger.do(runs.watermark) == MARK, "a failed hook must not change the watermark"
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
    monkeypatch.setattr(hooks_module, "GRACE_SECONDS", 0.01)
    stop = asyncio.Event()

    async def slow(_: Summary) -> None:
        stop.set()
        await forever()

    summary = await run_job(ledger, done, Hook("export", slow), stop=stop)
    assert summary.status == "done", "the run had ended before the hook"
    assert list(summary.warnings) == ["export"]
    assert await ledger.do(runs.watermark) == MARK


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
    assert await ledger.do(runs.watermark) == MARK
