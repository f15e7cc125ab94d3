"""What an audit reads of the ledger: the latest stories, and what is on record of a pair."""

import json
import random
import sqlite3
from collections.abc import Iterable
from enum import StrEnum

ROWS_AT_ONCE = 5_000
MOST_LISTED = 100_000  # the latest stories among which the sample is drawn

Pair = tuple[int, int]  # ids, the lower first


class OnRecord(StrEnum):
    """What the ledger says of a pair."""

    FLAGGED = "flagged"
    SUPPRESSED = "suppressed"
    PENDING = "pending"
    NEAR_MISS = "near miss"


def latest(db: sqlite3.Connection, since: int, most: int) -> list[int]:
    """At most `most` ids, drawn at random, of stories that became known at or after `since` (milliseconds).

    Only the last MOST_LISTED versions are looked at, and none behind ROWS_AT_ONCE that are all older: versions are
    numbered in the order of their writing.  Works are left out.
    """
    found: list[int] = []
    below, listed = 2**63 - 1, 0
    while listed < MOST_LISTED:
        rows = db.execute(
            "SELECT number, id, known_since FROM stories WHERE number < ? ORDER BY number DESC LIMIT ?",
            (below, ROWS_AT_ONCE),
        ).fetchall()
        new = [story_id for _, story_id, known_since in rows if known_since >= since and story_id >= 0]
        if not new:
            break
        found += new
        below, listed = rows[-1][0], listed + len(rows)
    return random.SystemRandom().sample(found, min(most, len(found)))


def on_record(db: sqlite3.Connection, pairs: Iterable[Pair]) -> dict[Pair, OnRecord]:
    """What the ledger says of each pair; those of which it says nothing are left out."""
    rows = db.execute(
        "WITH wanted AS (SELECT value ->> 0 AS a, value ->> 1 AS b FROM json_each(?))"
        " SELECT w.a, w.b, CASE"
        " WHEN EXISTS (SELECT 1 FROM flags f WHERE f.a = w.a AND f.b = w.b AND status <> 'withdrawn') THEN 'flagged'"
        " WHEN EXISTS (SELECT 1 FROM suppressed_pairs s WHERE s.a = w.a AND s.b = w.b) THEN 'suppressed'"
        " ELSE (SELECT iif(verified_at IS NULL, 'pending', 'near miss') FROM candidates c"
        " WHERE c.a = w.a AND c.b = w.b) END FROM wanted w",
        (json.dumps(list(pairs)),),
    )
    return {(a, b): OnRecord(state) for a, b, state in rows if state is not None}


def open_matches(db: sqlite3.Connection, story_id: int) -> int:
    """The larger number of a story's open flags: those by passages, or the others."""
    rows = db.execute(
        "SELECT count(*) FROM flags WHERE (a = ?1 OR b = ?1) AND status = 'open' GROUP BY by_passages", (story_id,)
    )
    return max((n for (n,) in rows), default=0)
