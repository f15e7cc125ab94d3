"""Leases: which moderator has which case open, so that no two work on one.

A lease ends when its moderator is done with the case, or LEASE_MS after the moderator's last activity on it.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from neardup.errors import Conflict
from neardup.ledger import now_ms, transaction
from neardup.records import rfc3339

LEASE_MS = 10 * 60_000


class Held(Conflict):
    """Another moderator holds the case."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The moderator who holds a case, and until when, in milliseconds."""

    case_id: int
    moderator: str
    until: int


def take(db: sqlite3.Connection, case_id: int, moderator: str) -> Lease:
    """Lease a case to a moderator, or renew the lease; returns the lease of another where that one holds it."""
    with transaction(db):
        now = now_ms()
        held = _held(db, [case_id], now)
        if held and held[0].moderator != moderator:
            return held[0]
        db.execute("DELETE FROM leases WHERE until <= ?", (now,))
        db.execute(
            "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (case_id) DO UPDATE SET until = excluded.until",
            (case_id, moderator, now, now + LEASE_MS),
        )
        return Lease(case_id, moderator, now + LEASE_MS)


def release(db: sqlite3.Connection, moderator: str, case_ids: Iterable[int]) -> None:
    """End a moderator's leases of these cases."""
    with transaction(db):
        db.executemany("DELETE FROM leases WHERE moderator = ? AND case_id = ?", ((moderator, n) for n in case_ids))


def held(db: sqlite3.Connection, case_ids: Iterable[int]) -> dict[int, Lease]:
    """The leases of those of these cases that a moderator holds now."""
    return {lease.case_id: lease for lease in _held(db, case_ids, now_ms())}


def refuse_if_held(db: sqlite3.Connection, flag_ids: Iterable[int], moderator: str) -> None:
    """Raise Held if another moderator holds the case of one of these flags."""
    rows = db.execute(
        "SELECT DISTINCT case_id FROM flags WHERE flag_id IN (SELECT value FROM json_each(?)) AND case_id IS NOT NULL",
        (json.dumps(list(flag_ids)),),
    )
    for lease in _held(db, [row[0] for row in rows], now_ms()):
        if lease.moderator != moderator:
            raise held_by_another(lease)


def held_by_another(lease: Lease) -> Held:
    """The refusal of what the holder of this lease alone may do."""
    return Held(f"{lease.moderator} has this case open, until {rfc3339(lease.until)} at the latest")


def _held(db: sqlite3.Connection, case_ids: Iterable[int], now: int) -> list[Lease]:
    rows = db.execute(
        "SELECT case_id, moderator, until FROM leases WHERE case_id IN (SELECT value FROM json_each(?)) AND until > ?",
        (json.dumps(list(case_ids)), now),
    )
    return [Lease(*row) for row in rows]
