"""Timestamps as text."""

from datetime import UTC, datetime


def rfc3339(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 -> 2026-11-20T02:00:00Z, with a fraction unless it is zero."""
    if milliseconds is None:
        return None
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")
