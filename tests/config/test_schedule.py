"""Laws: a run is never due before now; it is due at once if a slot was missed, and otherwise at the next slot; a
wall-clock time occurs once a day, even on days when the clock changes.
"""

import time as clock
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config.schedule import Daily, find_next_run, parse_duration, parse_schedule

KOLKATA, BERLIN = ZoneInfo("Asia/Kolkata"), ZoneInfo("Europe/Berlin")
ZONES = [
    KOLKATA,
    BERLIN,
    UTC,
    *map(ZoneInfo, ("America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut")),
]
zones = st.sampled_from([zone for zone in ZONES if isinstance(zone, ZoneInfo)])
timestamps = st.datetimes(datetime(2015, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
dailies = st.builds(Daily, st.times().map(lambda at: at.replace(microsecond=0, fold=0)), zones)
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=30))
lags = st.timedeltas(timedelta(0), timedelta(days=4))


def slots(daily: Daily, around: datetime) -> list[datetime]:
    """The schedule's slots from four days before to four days after."""
    day = around.astimezone(daily.zone).date()
    days = [day + timedelta(days=n) for n in range(-4, 5)]
    return [datetime.combine(day, daily.at, daily.zone).astimezone(UTC) for day in days]


@given(st.one_of(dailies, intervals), st.none() | timestamps, timestamps)
def test_a_run_is_never_due_before_now(schedule: Daily | timedelta, last: datetime | None, now: datetime) -> None:
    assert find_next_run(schedule, last, now) >= now


@given(st.one_of(dailies, intervals), timestamps)
def test_the_first_run_is_due_at_once(schedule: Daily | timedelta, now: datetime) -> None:
    assert find_next_run(schedule, None, now) == now


@given(dailies, timestamps, lags)
def test_a_missed_slot_is_due_at_once(daily: Daily, now: datetime, lag: timedelta) -> None:
    last = now - lag
    missed = any(last < slot <= now for slot in slots(daily, now))
    following = min(slot for slot in slots(daily, now) if slot > now)
    assert find_next_run(daily, last, now) == (now if missed else following)


@given(dailies, timestamps)
def test_a_success_makes_the_next_days_slot_due(daily: Daily, now: datetime) -> None:
    first = find_next_run(daily, now, now)
    second = find_next_run(daily, first, first)
    assert now < first < second
    assert first.astimezone(daily.zone).date() + timedelta(days=1) == second.astimezone(daily.zone).date()


@given(intervals, timestamps, lags)
def test_an_interval_counts_from_the_last_success(interval: timedelta, now: datetime, lag: timedelta) -> None:
    assert find_next_run(interval, now - lag, now) == max(now, now - lag + interval)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("at", ["00:00", "00:30", "01:59:59", "02:00", "02:30", "03:00", "23:59"])
def test_a_year_has_as_many_runs_as_days(at: str, zone: ZoneInfo) -> None:
    daily = Daily(time.fromisoformat(at), zone)
    now = datetime(2026, 1, 1, 23, 59, 59, tzinfo=zone)
    days = []
    for _ in range(365):
        now = find_next_run(daily, now, now)
        days.append(now.astimezone(zone).date())
    assert days == [datetime(2026, 1, 2, tzinfo=UTC).date() + timedelta(days=n) for n in range(365)]


@pytest.mark.parametrize(
    ("after", "slot"),
    [
        ("2026-03-28T12:00Z", "2026-03-29T01:30Z"),  # 02:30 does not exist; the run is at 03:30 summer time
        ("2026-03-29T12:00Z", "2026-03-30T00:30Z"),
        ("2026-10-24T12:00Z", "2026-10-25T00:30Z"),  # 02:30 occurs twice; the run is at the first
        ("2026-10-25T00:30Z", "2026-10-26T01:30Z"),
    ],
)
def test_clock_changes_in_berlin(after: str, slot: str) -> None:
    now = datetime.fromisoformat(after)
    assert find_next_run(Daily(time(2, 30), BERLIN), now, now) == datetime.fromisoformat(slot)


@pytest.fixture(params=["Asia/Kolkata", "Europe/Berlin", "UTC"])
def machine_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    """The machine's time zone, set for the test."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        clock.tzset()
        yield ZoneInfo(request.param)
    clock.tzset()


def test_the_default_zone_is_the_machines(machine_zone: ZoneInfo) -> None:
    now = datetime(2026, 6, 15, 12, tzinfo=UTC)
    assert find_next_run(Daily(time(2)), now, now) == find_next_run(Daily(time(2), machine_zone), now, now)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("02:00", Daily(time(2))),
        ("23:59:30", Daily(time(23, 59, 30))),
        ("02:00 Asia/Kolkata", Daily(time(2), KOLKATA)),
        ("every 1h", timedelta(hours=1)),
        ("every 90s", timedelta(seconds=90)),
        ("every 15 m", timedelta(minutes=15)),
        ("every 2d", timedelta(days=2)),
    ],
)
def test_a_schedule_is_parsed(text: str, schedule: object) -> None:
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize("text", [
    "", "2 am", "24:00", "02:60", "02:00 Nowhere", "02:00 Asia", "02:00 ../etc/passwd", "every", "every ", "every 0h",
    "every 1w", "every -1h", "every 1.5h", "every 99999999999d", "02:00+05:30", "hourly",
])  # fmt: skip
def test_an_invalid_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a schedule|not a duration|longer than zero"):
        parse_schedule(text)


@given(st.integers(0, 3_650), st.sampled_from("smhd"))
def test_a_duration_is_its_number_of_units(number: int, unit: str) -> None:
    assert parse_duration(f" {number}{unit} ") == number * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] * timedelta(
        seconds=1
    )
