"""The rows of `stories`: how their long columns are stored, and how stories are shown.

Most of a ledger consists of these rows.  So the digits of a hash are stored as bytes, and the digits of an id as an
integer.  Unpacking returns exactly the original text; a text for which it would not is stored as it is.

The ledger knows a story by an integer.  Where the listing gives a name instead, the integer is made from it, and the
name stands beside the story.  Whatever leaves the program for people or other programs has the ids of the functions
here; each looks up all ids that it is given at once.
"""

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from neardup.ledger import AMONG, Row, dump_list, select_named_rows
from neardup.records import FIRST_ID_OF_NAMES, ShownId

MAX_INTEGER = 2**63 - 1
MD5 = re.compile(r'"[0-9a-f]{32}"')
INTEGER = re.compile(r"0|[1-9][0-9]{0,18}")
ROWS_AT_A_TIME = 1_000
NAMES = (  # of stories on record, and of those that are marked only
    f"SELECT id, name FROM stories WHERE name IS NOT NULL AND id {AMONG}",
    f"SELECT story_id, name FROM marks WHERE name IS NOT NULL AND story_id {AMONG}",
)


def pack_etag(etag: str | None) -> bytes | str | None:
    """Pack the ETag of an object that was uploaded in one part, which is a quoted MD5, into 16 bytes."""
    return bytes.fromhex(etag[1:-1]) if etag is not None and MD5.fullmatch(etag) else etag


def unpack_etag(packed: bytes | str | None) -> str | None:
    """The inverse of `pack_etag`."""
    return f'"{packed.hex()}"' if isinstance(packed, bytes) else packed


def pack_id(digits: str | None) -> int | str | None:
    """Pack an id that consists of decimal digits into an integer; CAST(... AS TEXT) unpacks it."""
    if digits is None or not INTEGER.fullmatch(digits) or int(digits) > MAX_INTEGER:
        return digits
    return int(digits)


def describe(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Row]:
    """The rows of `described` of the known stories among these ids."""
    rows = select_named_rows(db, f"SELECT * FROM described WHERE id {AMONG}", (dump_list(ids),))
    return {row["id"]: row for row in rows}


def are_held(db: sqlite3.Connection) -> bool:
    """Whether a story on record may have a name."""
    return any(
        db.execute(f"SELECT EXISTS (SELECT 1 FROM stories WHERE id {bound})", (limit,)).fetchone()[0]
        for bound, limit in ((">= ?", FIRST_ID_OF_NAMES), ("<= ?", -FIRST_ID_OF_NAMES))
    )


def read_shown_ids(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, ShownId]:
    """Ids -> as they are shown.  A forgotten story has lost its name, and is shown by its integer."""
    shown: dict[int, ShownId] = {story_id: story_id for story_id in ids}
    made = [story_id for story_id in shown if abs(story_id) >= FIRST_ID_OF_NAMES]
    for query in NAMES if made else ():
        lacking = [story_id for story_id in made if shown[story_id] == story_id]
        shown.update(db.execute(query, (dump_list(lacking),)))
    return shown


def show_ids(
    db: sqlite3.Connection, rows: Iterable[Mapping[str, Any]], columns: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Rows with the ids in these columns as they are shown; an id may be None."""
    source = iter(rows)
    while batch := list(islice(source, ROWS_AT_A_TIME)):
        ids = {row[column] for row in batch for column in columns}
        shown: dict[int | None, ShownId | None] = {None: None}
        shown.update(read_shown_ids(db, ids - {None}).items())
        for row in batch:
            yield {**row, **{column: shown[row[column]] for column in columns}}
