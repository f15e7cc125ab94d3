"""The ids by which stories are shown.

The ledger knows a story by an integer.  Where the listing gives a name instead, the integer is made from it, and the
name stands beside the story.  Whatever leaves the program for people or other programs has the ids of these functions;
each looks up all ids that it is given at once.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from neardup.ledger import AMONG, dump_list
from neardup.records import FIRST_ID_OF_NAMES, ShownId

ROWS_AT_A_TIME = 1_000
NAMES = (  # of stories on record, and of those that are marked only
    f"SELECT id, name FROM stories WHERE name IS NOT NULL AND id {AMONG}",
    f"SELECT story_id, name FROM marks WHERE name IS NOT NULL AND story_id {AMONG}",
)


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
