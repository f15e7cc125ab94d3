"""The works on record beside [reference] and its last sync, for `neardup doctor` and `neardup status`."""

import sqlite3

from neardup.config import Reference
from neardup.ledger import runs, works

SYNC = "run `neardup reference sync`"


def difference(db: sqlite3.Connection, reference: Reference | None) -> str | None:
    """What is wrong with the works on record, and how to mend it; None if nothing is."""
    if reference is None:
        return without_section(works.count(db))
    if (sync := runs.last_of(db, "reference")) is None:
        return f"the works were never listed: {SYNC}"
    if sync["status"] != "done":
        why = f" ({sync['error']})" if sync["error"] else ""
        return f"the last sync is on record as {sync['status']}{why}: {SYNC}"
    if reference.kind == "manifest" and _changed_at(reference) > sync["started_at"]:
        return f"{reference.manifest} has changed since the last sync: {SYNC}"
    if lacking := sum(one.without_fingerprint for one in works.catalogues(db)):
        return f"{lacking:,} works have no fingerprint: {SYNC}, which says why"
    return None


def without_section(count: int) -> str | None:
    """What follows if so many works are on record, but no [reference] is configured; None if there are none."""
    if not count:
        return None
    return (
        f"{count:,} works are on record, but the configuration has no [reference]: their pages cannot be read, so new"
        " copies that changed a word are only estimated, and copied passages are not found; put [reference] back, or"
        " run `neardup reference remove NAME`"
    )


def _changed_at(reference: Reference) -> int:
    """When the list of works was last written, in milliseconds since 1970."""
    assert reference.manifest is not None
    return reference.manifest.stat().st_mtime_ns // 1_000_000
