"""Moments in time, as people and files are told of them."""

from datetime import UTC, datetime


def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 -> 2026-11-20T02:00:00Z, with milliseconds where there are any."""
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")
