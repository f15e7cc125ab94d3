"""The outbox of the passage index: the passage hashes of the stories that no durable segment holds yet.

`stories.commit` writes them in the transaction of their stories, under the stories' numbers.  They are removed once a
segment that holds their numbers is durable.
"""

import sqlite3
from collections.abc import Iterable, Sequence

from neardup.ledger import transaction
from neardup.ledger.runs import get as get_meta
from neardup.ledger.runs import put as put_meta


def put(db: sqlite3.Connection, rows: Iterable[tuple[int, bytes]]) -> None:
    """Record the passage hashes of stories by their numbers, within the caller's transaction."""
    db.executemany("INSERT INTO passage_hashes VALUES (?, ?)", rows)


def remove(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove the rows of versions that are replaced or removed, within the caller's transaction."""
    db.executemany("DELETE FROM passage_hashes WHERE number = ?", ((number,) for number in numbers))


def after(db: sqlite3.Connection, number: int, limit: int) -> list[tuple[int, bytes]]:
    """The next rows after a number, in order: number, hashes of 4 bytes each, ascending as little-endian numbers."""
    return db.execute(
        "SELECT number, hashes FROM passage_hashes WHERE number > ? ORDER BY number LIMIT ?", (number, limit)
    ).fetchall()


def prune(db: sqlite3.Connection, last: int) -> None:
    """Remove the rows up to a number, which a durable segment holds, and record that number."""
    with transaction(db):
        hand_over(db, last)


def hand_over(db: sqlite3.Connection, last: int) -> None:
    """As `prune`, within the caller's transaction."""
    db.execute("DELETE FROM passage_hashes WHERE number <= ?", (last,))
    put_meta(db, "passages_flushed", str(max(last, flushed(db))))


def flushed(db: sqlite3.Connection) -> int:
    """The number up to which passage hashes were handed over to segments; 0 before the first."""
    return int(get_meta(db, "passages_flushed") or 0)


def count(db: sqlite3.Connection) -> int:
    """The number of stories whose passage hashes no durable segment holds yet."""
    return int(db.execute("SELECT count(*) FROM passage_hashes").fetchone()[0])
