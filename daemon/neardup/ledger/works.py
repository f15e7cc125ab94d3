"""The works of the reference: which catalogue lists each, and by which licence.

A work is a story with a negative id.  It keeps its row here while it has no fingerprint, because its page is empty or
all fingerprints are being made again.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable

from msgspec import Struct

from neardup.ledger import AMONG, dump_list


class Catalogue(Struct, frozen=True):
    """A catalogue: its works, how many of them are not fingerprinted, and the open flags of copies of its works."""

    name: str
    licences: tuple[str, ...]
    works: int
    without_fingerprint: int
    open_flags: int


def put(db: sqlite3.Connection, listed: Iterable[tuple[int, str | None, str | None]]) -> None:
    """Record the works among stories, of which id, catalogue and licence are given, in the caller's transaction."""
    rows = [row for row in listed if row[1] is not None]
    if rows:
        db.executemany(
            "INSERT INTO works VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET licence = excluded.licence"
            " WHERE licence IS NOT excluded.licence",
            rows,
        )


def list_catalogues(db: sqlite3.Connection) -> list[Catalogue]:
    """All catalogues on record, by name."""
    copies = count_open_flags(db)
    rows = db.execute(
        "SELECT catalogue, json_group_array(DISTINCT licence) FILTER (WHERE licence IS NOT NULL), count(*),"
        " sum(id IS NULL) FROM works LEFT JOIN stories ON id = story_id GROUP BY catalogue ORDER BY catalogue"
    )
    return [
        Catalogue(name, tuple(sorted(json.loads(licences))), works, lacking, copies.get(name, 0))
        for name, licences, works, lacking in rows
    ]


def count_by_catalogue(db: sqlite3.Connection) -> dict[str, int]:
    """Catalogue -> its number of works."""
    return dict(db.execute("SELECT catalogue, count(*) FROM works GROUP BY catalogue ORDER BY catalogue").fetchall())


def count_open_flags(db: sqlite3.Connection, since: int = 0) -> dict[str, int]:
    """Catalogue -> the open flags of copies of its works, of those flagged at or after a time in milliseconds.

    Flags between stories of one author that `detection.same_author = "hide"` leaves out do not count.
    """
    rows = db.execute(
        "SELECT catalogue, count(*) FROM flags JOIN works ON story_id = a"
        " WHERE a < 0 AND +status = 'open' AND NOT same_author AND flagged_at >= ? GROUP BY catalogue",
        (since,),
    )
    return dict(rows.fetchall())


def count(db: sqlite3.Connection) -> int:
    """The number of works."""
    return int(db.execute("SELECT count(*) FROM works").fetchone()[0])


def list_unlisted(db: sqlite3.Connection, listed: Collection[int]) -> list[int]:
    """The works that are not among those listed."""
    return [story_id for (story_id,) in db.execute("SELECT story_id FROM works") if story_id not in listed]


def list_ids(db: sqlite3.Connection, catalogue: str) -> list[int]:
    """The works of a catalogue."""
    return [row[0] for row in db.execute("SELECT story_id FROM works WHERE catalogue = ?", (catalogue,))]


def remove(db: sqlite3.Connection, ids: Collection[int]) -> int:
    """Remove works from their catalogues, within the caller's transaction; returns their number."""
    return db.execute(f"DELETE FROM works WHERE story_id {AMONG}", (dump_list(ids),)).rowcount
