"""When the clock is set back or forward, no run is delayed, no story is lost and none is flagged twice."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.app import open_app
from neardup.config import load
from neardup.config.schedule import Daily, Schedule, find_next_run
from neardup.ledger import now_ms, runs
from neardup.ops import service
from neardup.ops.service import Service

from tests.support.builders import ledger_in_memory
from tests.support.command import Neardup, embedded
from tests.support.samples import PLANTED, ROWS, kinds
from tests.support.sampling import CHAOS, count_examples

HOUR, DAY = 3_600_000, 86_400_000
TODAY = 1_800_000_000_000
Make = Callable[..., Neardup]

schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.times().map(Daily), st.timedeltas(timedelta(minutes=1), timedelta(days=3))
)
timestamps = st.integers(946_684_800, 4_102_444_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(schedules, timestamps, timestamps)
def test_a_run_is_never_delayed_beyond_its_schedule(schedule: Schedule, success: datetime, now: datetime) -> None:
    longest = (
        schedule if isinstance(schedule, timedelta) else timedelta(days=1, hours=2)
    )  # a daylight saving change in between
    assert find_next_run(schedule, success, now) - now <= longest


behind = st.integers(-400 * DAY, 0)
passing = st.integers(1, 3 * DAY)


def assert_all_are_listed(days: list[tuple[int, int]], ahead: int) -> None:
    """Simulate (time passed, clock error) in ms: stories are updated, and a daily run follows; the last clock is right.

    Each time one story is dated correctly, and another `ahead` of that.
    """
    db, overlap, true, listed, updated = ledger_in_memory(), HOUR, TODAY, set[int](), list[int]()
    for passed, off in [*days, (DAY, 0)]:
        true += passed
        updated += [true - 1, true - 1 + ahead]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(time, "time_ns", lambda now=true + off: now * 1_000_000)
            mark, began = runs.read_trusted_watermark(db, now_ms()), now_ms()
            run_id = runs.begin(db, "daily")
            in_run = {at for at in updated if mark is None or at >= mark - overlap}
            listed |= in_run
            newest = max((at for at in in_run if at <= began), default=None)
            runs.finish(db, run_id, "done", counts={}, watermark=newest)
    assert set(updated) <= listed, "some stories were never listed"


@settings(max_examples=count_examples(100 * CHAOS), deadline=None)
@given(st.lists(st.tuples(passing, st.one_of(behind, st.integers(0, 400 * DAY))), min_size=1, max_size=12))
def test_no_story_is_lost_to_a_wrong_clock(days: list[tuple[int, int]]) -> None:
    assert_all_are_listed(days, ahead=0)


@settings(max_examples=count_examples(100 * CHAOS), deadline=None)
@given(st.lists(st.tuples(passing, st.one_of(behind, st.integers(60 * DAY, 400 * DAY))), min_size=1, max_size=12))
def test_no_story_is_lost_to_stories_dated_ahead(days: list[tuple[int, int]]) -> None:
    """The clock is further ahead than the stories; otherwise the ledger holds no evidence of the error."""
    assert_all_are_listed(days, ahead=30 * DAY)


def test_the_last_success_is_that_of_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    db = ledger_in_memory()
    for at in (TODAY + 300 * DAY, TODAY):
        monkeypatch.setattr(time, "time_ns", lambda at=at: at * 1_000_000)
        runs.finish(db, runs.begin(db, "daily"), "done", counts={})
    assert runs.read_last_successes(db) == {"daily": TODAY}


async def test_a_daemon_keeps_its_schedule_after_a_clock_change(
    make_neardup: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock was ahead and a future-dated story moved the watermark; later stories are still listed."""
    first, rest = split(tmp_path)
    neardup = make_neardup(embedded(manifest=first) + '[run]\nschedule = "every 1h"\n')
    offset = 300 * DAY
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + offset * 1_000_000)
    config = load(neardup.folder / "config.toml")
    pauses: list[int] = []

    async def pause(self: Service, seconds: float) -> None:
        nonlocal offset
        pauses.append(round(seconds))
        if len(pauses) == 1:
            offset = 0
            first.write_text(rest.read_text(encoding="utf-8"), encoding="utf-8")
        else:
            self._stop.set()

    monkeypatch.setattr(service.Service, "_pause", pause)
    stop = asyncio.Event()
    await Service(config.ledger.path, config.metrics.listen, config.run.schedule, partial(open_app, config), stop).run()
    assert pauses == [300, 300], "the schedule did not resume after the clock was corrected"
    status = neardup("status", "--json").facts
    assert [run["counts"]["listed"] for run in status["runs"]] == [len(ROWS), len(ROWS) - 5]
    assert kinds(neardup) == PLANTED
    assert status["watermark"] < datetime.now(UTC).isoformat(), "the watermark was not corrected"


def split(folder: Path) -> tuple[Path, Path]:
    """A manifest without the last 5 stories and one with all; one story is dated 200 days ahead."""
    ahead = (datetime.now(UTC) + timedelta(days=200)).isoformat()
    paths = folder / "first.jsonl", folder / "rest.jsonl"
    for path, rows in zip(paths, (ROWS[:-5], ROWS), strict=True):
        dated = [{**rows[0], "updated_at": ahead}, *rows[1:]]
        path.write_text("".join(json.dumps(row) + "\n" for row in dated), encoding="utf-8")
    return paths
