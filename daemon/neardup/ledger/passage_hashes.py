"""The outbox of the passage index: the passage hashes of the stories that no durable segment holds yet.

`stories.commit` writes them in the transaction of their stories, under the stories' numbers.  They are removed once a
segment that holds their numbers is durable.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neardup.ledger import languages, transaction
from neardup.ledger.changes import last_seq
from neardup.ledger.runs import get as get_meta
from neardup.ledger.runs import put as put_meta
from neardup.records import Language

ROWS_AT_A_TIME = 100_000


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


def live_numbers(db: sqlite3.Connection) -> npt.NDArray[np.bool_]:
    """(last number + 1,) whether each number is that of a story; the numbers of former versions are not."""
    live = np.zeros(last_seq(db) + 1, bool)
    rows = db.execute("SELECT number FROM stories")  # SQLite reads them from the small index of ids
    while some := rows.fetchmany(ROWS_AT_A_TIME):
        live[np.array(some, np.int64).ravel()] = True
    return live


def ids_of(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, int]:
    """The ids of the stories with these numbers; the numbers of former versions are left out."""
    return {number: story_id for number, (story_id, _) in stories_of(db, numbers).items()}


def stories_of(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, tuple[int, Language]]:
    """The id and the language of the stories with these numbers; the numbers of former versions are left out."""
    rows = db.execute(
        "SELECT number, id, language FROM stories WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )
    name_of = languages.names(db)
    return {number: (story_id, name_of[language]) for number, story_id, language in rows}
