"""Flags: verified pairs that are copies by the thresholds."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neardup.core.verify.clusters import Edge
from neardup.ledger import languages, now_ms, transaction
from neardup.ledger.selection import JOINING, Selection, conditions
from neardup.records import Kind
from neardup.records import Language

PAIR_COLUMNS = (
    "flag_id, kind, language, story_id, matched_id, hamming, jaccard, containment, matched_containment,"
    " longest_run_words, story_title, matched_title, story_author_id, matched_author_id, story_published_at,"
    " matched_published_at, status, flagged_at, fingerprint_version, estimated,"
    " context, context_note, context_by, context_at, signals, story_path, matched_path, story_name, matched_name,"
    " copied_words, story_updated_at, matched_updated_at, story_known_since, matched_known_since,"
    " verdict, moderator, note, decided_at, undone_at, undone_by, catalogue, licence"
)
QUEUE_ORDER = "ORDER BY severity, strength DESC, a, b"
OPEN = Selection()


def select(
    db: sqlite3.Connection,
    selection: Selection = OPEN,
    *,
    limit: int = -1,
    offset: int = 0,
) -> Iterator[sqlite3.Row]:
    """The flags of a selection, one row a pair, the most severe first.  Columns: PAIR_COLUMNS.

    `context` is the latest verdict on another pair of either story, None for most; `context_note`, `context_by` and
    `context_at` (milliseconds) are its note, its moderator and its time.
    """
    holding, values = conditions(db, selection)
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id IN"
        f" (SELECT flag_id FROM flags WHERE {holding} {QUEUE_ORDER} LIMIT ? OFFSET ?) {QUEUE_ORDER}",
        (*values, limit, offset),
    )


def of_ids(db: sqlite3.Connection, flag_ids: Iterable[int]) -> dict[int, sqlite3.Row]:
    """These flags as `select` returns them, by id."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(flag_ids)),),
    )
    return {row["flag_id"]: row for row in rows}


def tally(db: sqlite3.Connection, selection: Selection = OPEN) -> Counter[tuple[Language, Kind]]:
    """The number of flags in a selection, by language and kind."""
    holding, values = conditions(db, selection)
    name_of = languages.names(db)
    query = f"SELECT language, kind, count(*) FROM flags WHERE {holding} GROUP BY 1, 2"
    return Counter({(name_of[language], kind): n for language, kind, n in db.execute(query, values)})


def of_pair(db: sqlite3.Connection, one: int, other: int) -> dict[str, Any] | None:
    """The flag of two stories, in either order and of any status, as a row of `pairs`; None where there is none."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id = (SELECT flag_id FROM flags WHERE a = ? AND b = ?)",
        (min(one, other), max(one, other)),
    )
    return next(map(dict, rows), None)


def count(db: sqlite3.Connection, selection: Selection = OPEN) -> int:
    """The number of flags in a selection."""
    holding, values = conditions(db, selection)
    return int(db.execute(f"SELECT count(*) FROM flags WHERE {holding}", values).fetchone()[0])


def of_cluster(db: sqlite3.Connection, story_id: int) -> list[sqlite3.Row]:
    """The flags between members of the cluster of a story, as `select` returns them."""
    return list(select(db, _joining(story_id)))


def edges_around(db: sqlite3.Connection, story_id: int) -> list[Edge]:
    """The edges within the cluster of a story, as `clusters.edges` returns them."""
    holding, values = conditions(db, _joining(story_id))
    return db.execute(
        f"SELECT a, b, score FROM flags WHERE joins_clusters AND {holding} ORDER BY a, b", values
    ).fetchall()


def edges_of_case(db: sqlite3.Connection, case_id: int) -> tuple[list[Edge], dict[int, int | None]]:
    """The edges within the cluster of a case, as `clusters.edges` returns them, and when each story was published."""
    rows = db.execute(
        "SELECT a, b, score, published_a, published_b FROM flags"
        f" WHERE case_id = ? AND joins_clusters AND +status IN {JOINING} ORDER BY a, b",
        (case_id,),
    ).fetchall()
    published = {row[0]: row[3] for row in rows} | {row[1]: row[4] for row in rows}
    return [row[:3] for row in rows], published


def _joining(story_id: int) -> Selection:
    return Selection(statuses=JOINING, cluster=story_id, same_author=True)


def mark_exported(db: sqlite3.Connection, flag_ids: Sequence[int]) -> None:
    """Record that these flags have been exported."""
    with transaction(db):
        db.executemany(
            "UPDATE flags SET exported_at = ? WHERE flag_id = ? AND exported_at IS NULL",
            ((now_ms(), n) for n in flag_ids),
        )


def counts(db: sqlite3.Connection, *, same_author: bool = False) -> dict[str, dict[str, int]]:
    """The number of open flags, by language and kind; `same_author` as in a Selection."""
    out: dict[str, dict[str, int]] = {}
    query = (
        "SELECT name, kind, count(*) FROM flags JOIN languages ON number = language WHERE status = 'open'"
        " AND same_author <= ? GROUP BY 1, 2 ORDER BY 1, 2"
    )
    for language, kind, n in db.execute(query, (same_author,)):
        out.setdefault(language, {})[kind] = n
    return out
