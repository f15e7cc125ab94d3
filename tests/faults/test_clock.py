"""A clock that is set, back or forth: no run is put off, no story is lost, none is flagged twice."""

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
from neardup.ledger import now_ms, runs
from neardup.ops import service
from neardup.ops.service import Service
from neardup.schedule import Daily, Schedule, due

from tests.support.builders import ledger_in_memory
from tests.support.command import Neardup, embedded
from tests.support.samples import PLANTED, ROWS, kinds

HOUR, DAY = 3_600_000, 86_400_000
TODAY = 1_800_000_000_000
Make = Callable[..., Neardup]

schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.times().map(Daily), st.timedeltas(timedelta(minutes=1), timedelta(days=3))
)
moments = st.integers(946_684_800, 4_102_444_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(schedules, moments, moments)
def test_a_run_is_never_put_off_for_longer_than_its_schedule(
    schedule: Schedule, success: datetime, now: datetime
) -> None:
    longest = schedule if isinstance(schedule, timedelta) else timedelta(days=1, hours=2)  # a clock change in between
    assert due(schedule, success, now) - now <= longest


BEHIND = st.integers(-400 * DAY, 0)
passing = st.integers(1, 3 * DAY)


def assert_all_are_listed(days: list[tuple[int, int]], ahead: int) -> None:
    """Each time stories are updated, a run follows, by a clock that is off by so much; then the clock is right.

    One story each time is dated by a clock that is right, another is `ahead`.
    """
    db, overlap, true, listed, updated = ledger_in_memory(), HOUR, TODAY, set[int](), list[int]()
    for passed, off in [*days, (DAY, 0)]:
        true += passed
        updated += [true - 1, true - 1 + ahead]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(time, "time_ns", lambda now=true + off: now * 1_000_000)
            mark, began = runs.listed_until(db, now_ms()), now_ms()
            run_id = runs.begin(db, "daily")
            given = {at for at in updated if mark is None or at >= mark - overlap}
            listed |= given
            newest = max((at for at in given if at <= began), default=None)
            runs.finish(db, run_id, "done", counts={}, watermark=newest)
    assert set(updated) <= listed, "stories that no run was given"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(passing, st.one_of(BEHIND, st.integers(0, 400 * DAY))), min_size=1, max_size=12))
def test_no_story_is_lost_to_a_wrong_clock(days: list[tuple[int, int]]) -> None:
    assert_all_are_listed(days, ahead=0)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(passing, st.one_of(BEHIND, st.integers(60 * DAY, 400 * DAY))), min_size=1, max_size=12))
def test_no_story_is_lost_to_stories_dated_ahead_and_a_clock_that_was_further_ahead(
    days: list[tuple[int, int]],
) -> None:
    """Further ahead than it took to put it right: else nothing on record tells."""
    assert_all_are_listed(days, ahead=30 * DAY)


def test_the_last_success_is_that_of_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    db = ledger_in_memory()
    for at in (TODAY + 300 * DAY, TODAY):
        monkeypatch.setattr(time, "time_ns", lambda at=at: at * 1_000_000)
        runs.finish(db, runs.begin(db, "daily"), "done", counts={})
    assert runs.last_success(db) == {"daily": TODAY}


async def test_a_daemon_whose_clock_is_set_back_keeps_its_schedule(
    make_neardup: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its clock was a year ahead, and a story dated then moved the watermark; put right, what came since is listed."""
    first, rest = split(tmp_path)
    neardup = make_neardup(embedded(manifest=first) + '[run]\nschedule = "every 1h"\n')
    offset = 300 * DAY
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + offset * 1_000_000)
    config = load(neardup.folder / "config.toml")
    ran: list[int] = []

    async def pause(self: Service, seconds: float) -> None:
        nonlocal offset
        ran.append(round(seconds))
        if len(ran) == 1:
            offset = 0
            first.write_text(rest.read_text(encoding="utf-8"), encoding="utf-8")
        else:
            self._stop.set()

    monkeypatch.setattr(service.Service, "_pause", pause)
    stop = asyncio.Event()
    await Service(config.ledger.path, config.metrics.listen, config.run.schedule, partial(open_app, config), stop).run()
    assert ran == [300, 300], "a run at once after the clock was put right, and then the schedule again"
    status = neardup("status", "--json").facts
    assert [run["counts"]["listed"] for run in status["runs"]] == [len(ROWS), len(ROWS) - 5]
    assert kinds(neardup) == PLANTED
    assert status["watermark"] < datetime.now(UTC).isoformat(), "the watermark is put right, too"


def split(folder: Path) -> tuple[Path, Path]:
    """A manifest without the last stories, one of them dated in 200 days; and one of all of them."""
    ahead = (datetime.now(UTC) + timedelta(days=200)).isoformat()
    paths = folder / "first.jsonl", folder / "rest.jsonl"
    for path, rows in zip(paths, (ROWS[:-5], ROWS), strict=True):
        dated = [{**rows[0], "updated_at": ahead}, *rows[1:]]
        path.write_text("".join(json.dumps(row) + "\n" for row in dated), encoding="utf-8")
    return paths
