"""What moderators have decided lately and how fast, and what waits.  Days are those of UTC.

A verdict that was undone does not count, nor one that decides nothing.  A case is decided once none of its pairs is
open, by the last verdict on them; the cases are those of the last `cases.refresh`.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from neardup.ledger import languages
from neardup.records import STATUSES, Kind, Language

DAY_MS = 86_400_000
DECIDED = "decided_at >= ? AND open_flags = 0 AND NOT hidden"


class Waiting(Struct, frozen=True):
    """How long cases waited until they were decided, in milliseconds: the median, and what nine in ten kept to."""

    cases: int
    median: int
    ninth_decile: int


def count_opened(db: sqlite3.Connection, since: int) -> Counter[tuple[Kind, int]]:
    """The cases whose first flag was made since a time, by most severe kind and by the day, counted from 1970."""
    rows = db.execute(
        f"SELECT kinds, opened_at / {DAY_MS}, count(*) FROM cases WHERE opened_at >= ? AND NOT hidden GROUP BY 1, 2",
        (since,),
    )
    opened: Counter[tuple[Kind, int]] = Counter()
    for kinds, day, n in rows:
        opened[_choose_most_severe(kinds), day] += n
    return opened


def count_decided(db: sqlite3.Connection, since: int) -> Counter[tuple[Kind, str, int]]:
    """The cases that were decided since a time: by most severe kind, moderator, and day, counted from 1970."""
    rows = db.execute(
        f"SELECT kinds, decided_by, decided_at / {DAY_MS}, count(*) FROM cases WHERE {DECIDED} GROUP BY 1, 2, 3",
        (since,),
    )
    decided: Counter[tuple[Kind, str, int]] = Counter()
    for kinds, moderator, day, n in rows:
        decided[_choose_most_severe(kinds), moderator, day] += n
    return decided


def list_waits(db: sqlite3.Connection, since: int) -> list[int]:
    """How long each case that was decided since a time had waited since its first flag, in milliseconds."""
    rows = db.execute(f"SELECT max(decided_at - opened_at, 0) FROM cases WHERE {DECIDED}", (since,))
    return [wait for (wait,) in rows]


def measure_waiting(waits: Iterable[int]) -> Waiting | None:
    """How long cases waited, of the length for each; None if there are none."""
    lengths = sorted(waits)
    if not lengths:
        return None
    return Waiting(len(lengths), lengths[(len(lengths) - 1) // 2], lengths[(9 * len(lengths) - 1) // 10])


def _choose_most_severe(kinds: str) -> Kind:
    return kinds.strip(",").partition(",")[0]


def find_oldest_open(db: sqlite3.Connection) -> tuple[int, int] | None:
    """The case with the flag that has waited longest, and since when in milliseconds; None if none is open."""
    found = db.execute(
        "SELECT case_id, flagged_at FROM flags WHERE status = 'open' AND same_author = 0 AND case_id IS NOT NULL"
        " ORDER BY flagged_at LIMIT 1"
    ).fetchone()
    return found and tuple(found)


def count_open_cases(db: sqlite3.Connection) -> Counter[Language]:
    """The open cases that the desk lists, by language."""
    name_of = languages.map_names(db)
    rows = db.execute("SELECT language, count(*) FROM cases WHERE open_flags > 0 AND NOT hidden GROUP BY 1")
    return Counter({name_of[language]: n for language, n in rows})


def count_undecided(db: sqlite3.Connection, now: int) -> Counter[str]:
    """By moderator, the open cases that one has a lease of at `now`, or asked for a second opinion on."""
    rows = db.execute(
        "SELECT moderator, count(*) FROM"
        " (SELECT moderator, case_id FROM leases JOIN cases USING (case_id) WHERE until > ? AND open_flags > 0"
        " UNION SELECT value, case_id FROM cases, json_each(unsure) WHERE unsure <> '[]' AND open_flags > 0)"
        " GROUP BY 1",
        (now,),
    )
    return Counter(dict(rows.fetchall()))


def count_flagged(db: sqlite3.Connection, since: int) -> Counter[tuple[Language, Kind]]:
    """The pairs that were flagged since a time and are flagged still, by language and kind."""
    name_of = languages.map_names(db)
    rows = db.execute(
        f"SELECT language, kind, count(*) FROM flags WHERE status IN ({', '.join('?' * len(STATUSES))})"
        " AND same_author IN (0, 1) AND flagged_at >= ? GROUP BY 1, 2",
        (*STATUSES, since),
    )
    return Counter({(name_of[language], kind): n for language, kind, n in rows})


def count_fingerprinted(db: sqlite3.Connection, since: int) -> int:
    """The stories that the runs begun since a time have fingerprinted, without the works of the reference."""
    row = db.execute(
        "SELECT coalesce(sum(counts ->> 'fingerprinted'), 0) FROM runs"
        " WHERE started_at >= ? AND command <> 'reference'",
        (since,),
    ).fetchone()
    return int(row[0])
