"""Records verified candidates, and has flags verified again whose passages have become common."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from neardup.ledger import common_passages, flags, similarities, transaction
from neardup.records import Assessment, Candidate, Kind, Language


def record(
    db: sqlite3.Connection,
    assessed: Sequence[tuple[Candidate, Assessment | None]],
    version: str,
    revision: int | None = None,
) -> Counter[tuple[Language, Kind]]:
    """Turn verified candidates into flags or near misses, or drop them, in one transaction; returns the new flags.

    If a story of a candidate was edited since the candidate was read, the candidate stays pending.  If more passages
    are common than at `revision`, when the candidates were read, their flags by passages are verified again.
    """
    with transaction(db):
        new = flags.put(db, assessed, version)
        if revision is not None and common_passages.revision(db) != revision:
            _request_pairs(db, (pair for pair, _ in assessed))
        similarities.refresh(db)
    return new


def request(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Have the open flags by passages among the stories with these numbers verified again, in one transaction."""
    some = "SELECT id FROM stories WHERE number IN (SELECT value FROM json_each(?))"
    with transaction(db):
        _put(db, f"some (id) AS MATERIALIZED ({some})", "a IN some AND b IN some", json.dumps(list(numbers)))


def _request_pairs(db: sqlite3.Connection, pairs: Iterable[Candidate]) -> None:
    some = "SELECT value ->> 0, value ->> 1 FROM json_each(?)"
    ids = json.dumps([(pair.a.id, pair.b.id) for pair in pairs])
    _put(db, f"some (a, b) AS MATERIALIZED ({some})", "(a, b) IN some", ids)


def is_possible(db: sqlite3.Connection) -> bool:
    """Whether any flag is one that `request` might have verified again."""
    row = db.execute("SELECT EXISTS (SELECT 1 FROM flags WHERE by_passages AND status = 'open')").fetchone()
    return bool(row[0])


def _put(db: sqlite3.Connection, some: str, among: str, values: str) -> None:
    db.execute(
        f"WITH {some} INSERT INTO candidates (a, b, by_passages) SELECT a, b, 1 FROM flags"
        f" WHERE by_passages AND status = 'open' AND {among} ON CONFLICT DO NOTHING",
        (values,),
    )
