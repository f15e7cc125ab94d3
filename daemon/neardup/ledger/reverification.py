"""Flags that must be verified again, because passages that they rest on have become common."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from neardup.ledger import transaction
from neardup.pairs import Candidate


def request(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Have the open flags by passages among the stories with these numbers verified again, in one transaction."""
    some = "SELECT id FROM stories WHERE number IN (SELECT value FROM json_each(?))"
    with transaction(db):
        _put(db, f"some (id) AS MATERIALIZED ({some})", "a IN some AND b IN some", json.dumps(list(numbers)))


def request_pairs(db: sqlite3.Connection, pairs: Iterable[Candidate]) -> None:
    """Have the open flags by passages of these pairs verified again, within the caller's transaction."""
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
