"""Laws of progress: its rate and its time left are those of the phase; whoever looks meanwhile reads a whole record."""

import json
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict
from neardup.ledger import Ledger, connect, lock
from neardup.pipeline import progress as progress_module
from neardup.pipeline.progress import Progress, log_progress
from neardup.pipeline.summary import Counts
from neardup.telemetry import log as log_module

from tests.support.jobs import run_job


class Clock:
    """Stands for the module time."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@given(st.integers(1, 1000), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_the_time_left_is_that_of_what_is_left_at_the_rate_of_the_phase(
    seconds: int, first: int, moved: int, left: int
) -> None:
    clock = Clock()
    with patch.object(progress_module, "time", clock):
        progress = Progress()
        clock.now += 1000  # of an earlier phase
        progress.enter("comparing", first + moved + left, first)
        clock.now += seconds
        progress.enter("comparing", first + moved + left, first + moved)
        report = progress.report()
    assert report.seconds_left == round(left * seconds / moved)
    assert report.per_second == round(moved / seconds, 1)
    assert report.done == round((first + moved) / (first + moved + left), 4)


def test_a_resumed_listing_has_the_rate_of_its_own_rows() -> None:
    clock = Clock()
    with patch.object(progress_module, "time", clock):
        progress = Progress(Counts())
        progress.enter("reading", 1000)
        progress.resume_at(800)
        clock.now += 10
        progress.position, progress.counts.fingerprinted = 900, 50
        report = progress.report()
    assert (report.per_second, report.seconds_left, report.done) == (5.0, 10, 0.9)


async def test_the_holder_of_the_ledger_says_how_far_it_is_while_it_works(tmp_path: Path) -> None:
    seen: list[dict[str, Any] | None] = []

    async def work() -> bool:
        seen.append(lock.read_holder(path))
        return True

    path = tmp_path / "l.db"
    connect(path).close()
    ledger = Ledger(path)
    await run_job(ledger, work)
    ledger.close()
    [holder] = seen
    assert holder is not None and holder["command"] == "daily"
    assert holder["progress"] == {**asdict(Progress().report()), "per_second": holder["progress"]["per_second"]}
    assert lock.read_holder(path) is None


def test_a_shorter_note_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    with lock.only_one(tmp_path / "l.db", "sweep") as note:
        for text in ("x" * 1000, "y"):
            note({"progress": text})
            holder = lock.read_holder(tmp_path / "l.db")
            assert holder is not None and holder["progress"] == text


def test_a_log_has_lines_of_a_command_that_says_nothing_itself() -> None:
    logged = Event()

    class Log:
        def info(self, event: str, **facts: object) -> None:
            lines.append(json.dumps({"event": event, **facts}))
            logged.set()

    lines: list[str] = []
    with (
        patch.object(log_module, "LOG_EVERY_SECONDS", 0.01),
        patch.object(progress_module, "log", Log()),
        log_progress("backfill") as watch,
    ):
        logged.wait()
        progress = Progress(Counts(fingerprinted=7))
        progress.enter("verifying")
        watch(progress)
        while json.loads(lines[-1])["phase"] != "verifying":
            logged.clear()
            logged.wait()
    first, last = json.loads(lines[0]), json.loads(lines[-1])
    assert (first["event"], first["command"], first["phase"]) == ("progress", "backfill", "starting")
    assert (last["listed"], last["so_far"]) == (7, "7 listed, 0 flagged")
