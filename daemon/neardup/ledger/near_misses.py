"""Near misses: pairs that are no copies by the thresholds, with their signals, for trying out other thresholds."""

import sqlite3
from collections.abc import Iterable

from neardup.ledger.signals import SIGNAL_COLUMNS, columns_of
from neardup.records import Candidate, Signals


def count_near_misses(db: sqlite3.Connection) -> int:
    """The number of near misses."""
    return int(db.execute("SELECT count(*) FROM candidates WHERE verified_at IS NOT NULL").fetchone()[0])


def put(db: sqlite3.Connection, candidate: Candidate, signals: Signals, now: int, *, by_passages: bool = False) -> None:
    """Record a near miss, within the caller's transaction."""
    put_all(db, [(candidate, signals, by_passages)], now)


def put_all(db: sqlite3.Connection, rows: Iterable[tuple[Candidate, Signals, bool]], now: int) -> None:
    """Record near misses, each with whether passages alone nominated it, within the caller's transaction."""
    columns = ("a", "b", *SIGNAL_COLUMNS, "verified_at", "by_passages")
    db.executemany(
        f"INSERT INTO candidates ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        (
            (candidate.a.id, candidate.b.id, *columns_of(signals).values(), now, by_passages)
            for candidate, signals, by_passages in rows
        ),
    )
