"""Durations and schedules, and when the next daily run is due."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from msgspec import Struct

NO_SCHEDULE = 'not a schedule: {!r} (write "02:00", "02:00 Asia/Kolkata" or "every 1h")'
LONGEST = timedelta(days=3650)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Daily(Struct, frozen=True):
    """Every day at this wall-clock time, in the machine's time zone unless one is given."""

    at: time
    zone: tzinfo | None = None


Schedule = Daily | timedelta


def parse_duration(value: str) -> timedelta:
    """Text such as 90s, 15m, 1h or 2d -> timedelta.  Raises ValueError."""
    found = re.fullmatch(r"(\d+)\s*([smhd])", value.strip())
    if not found:
        raise ValueError(f"not a duration: {value!r} (write 90s, 15m, 1h or 2d)")
    try:
        length = timedelta(**{UNITS[found[2]]: int(found[1])})
    except OverflowError:
        length = timedelta.max
    if length > LONGEST:
        raise ValueError(f"not a duration: {value!r} (longer than {LONGEST.days} days)")
    return length


def parse_schedule(value: str) -> Schedule:
    """Text such as 02:00, 02:00 Asia/Kolkata or every 1h -> Schedule.  Raises ValueError."""
    if value.startswith("every "):
        every = parse_duration(value.removeprefix("every "))
        if not every:
            raise ValueError("an interval must be longer than zero")
        return every
    at, _, zone = value.partition(" ")
    try:
        daily = Daily(time.fromisoformat(at), _open_zone(zone.strip()) if zone else None)
    except (ValueError, KeyError, OSError):
        raise ValueError(NO_SCHEDULE.format(value)) from None
    if daily.at.tzinfo is not None:
        raise ValueError(NO_SCHEDULE.format(value))
    return daily


def _open_zone(name: str) -> tzinfo:
    """Raises ValueError, KeyError or OSError for a name that is none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most schedules name no zone

    return ZoneInfo(name)


def find_next_run(schedule: Schedule, last_success: datetime | None, now: datetime) -> datetime:
    """When to run next, given when a run last succeeded; `now` if a slot was missed.

    Times are aware.  A wall-clock time that a clock change skips or repeats counts once.  A success later than `now`
    was recorded before the clock was set back, and is ignored.
    """
    if last_success is None or last_success > now:
        return now
    if isinstance(schedule, timedelta):
        return max(last_success + schedule, now)
    previous, following = _find_slots(schedule, now)
    return now if last_success < previous else following


def _find_slots(schedule: Daily, now: datetime) -> tuple[datetime, datetime]:
    """The last slot up to `now`, and the one after it."""
    today = now.astimezone(schedule.zone).date()
    slots = [_find_slot(schedule, today + timedelta(days=days)) for days in (-1, 0, 1)]
    first = 1 if slots[1] <= now else 0
    return slots[first], slots[first + 1]


def _find_slot(schedule: Daily, day: date) -> datetime:
    local = datetime.combine(day, schedule.at, schedule.zone)  # without a zone, astimezone takes the machine's
    return local.astimezone(UTC)
