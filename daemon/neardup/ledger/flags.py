"""Flags: verified pairs that are copies by the thresholds."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neardup.ledger import languages, now_ms, transaction
from neardup.ledger.selection import Selection, conditions
from neardup.records import Kind, Language

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


def stories_with_flags(db: sqlite3.Connection, ids: Sequence[int]) -> list[sqlite3.Row]:
    """These stories, in this order, with what became of them.

    Columns: id, name, title, language, author_id, published_at, similarity (None for a story that copies nothing),
    `pairs` (the number of flags), `open` (those without a verdict) and `plagiarism` (those with this verdict).
    """
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    of_story = "FROM flags WHERE (a = d.id OR b = d.id) AND +status"
    return cursor.execute(
        "SELECT d.id, d.name, d.title, d.language, d.author_id, d.published_at, x.similarity,"
        f" (SELECT count(*) {of_story} <> 'withdrawn') AS pairs, (SELECT count(*) {of_story} = 'open') AS open,"
        f" (SELECT count(*) {of_story} = 'plagiarism') AS plagiarism"
        " FROM json_each(?) CROSS JOIN described d ON d.id = value LEFT JOIN similarities x ON x.story_id = d.id"
        " ORDER BY key",
        (json.dumps(list(ids)),),
    ).fetchall()
