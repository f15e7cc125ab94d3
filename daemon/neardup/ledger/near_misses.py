"""Near misses: pairs that are no copies by the thresholds, with their signals, for trying out other thresholds."""

import sqlite3

from neardup.ledger.signals import columns_of
from neardup.pairs import Candidate, Signals


def count(db: sqlite3.Connection) -> int:
    """The number of near misses."""
    return int(db.execute("SELECT count(*) FROM candidates WHERE verified_at IS NOT NULL").fetchone()[0])


def put(db: sqlite3.Connection, candidate: Candidate, signals: Signals, now: int, *, by_passages: bool = False) -> None:
    """Record a near miss, within the caller's transaction."""
    values = {
        "a": candidate.a.id,
        "b": candidate.b.id,
        **columns_of(signals),
        "verified_at": now,
        "by_passages": by_passages,
    }
    db.execute(
        f"INSERT INTO candidates ({', '.join(values)}) VALUES ({', '.join(f':{column}' for column in values)})", values
    )
