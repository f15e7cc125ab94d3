"""Timestamps as text."""

from datetime import UTC, datetime


def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 -> 2026-11-20T02:00:00Z, with a fraction unless it is zero."""
    if milliseconds is None:
        return None
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def milliseconds(time: str | None) -> int | None:
    """The inverse of `rfc3339`."""
    return None if time is None else round(datetime.fromisoformat(time).timestamp() * 1000)


def readable(time: str | None) -> str:
    """A time in RFC 3339, of any zone, for people: 20 November 2026, 02:00 UTC; "" for None."""
    if time is None:
        return ""
    when = datetime.fromisoformat(time).astimezone(UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
