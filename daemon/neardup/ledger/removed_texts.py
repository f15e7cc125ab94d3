"""Removed texts: what is remembered of a text that was removed while a verdict called it plagiarism.

Its page has vanished from the listing, or holds no text any more.  The fingerprint and the passage hashes are kept for
a time, without title and text, and later stories that match them are shown beside the author whose text was removed: an
account that is new, or has another name, may be the same person's.  A story that is forgotten on request leaves nothing
here.  The passage hashes come from the ledger's outbox or, where it has them no more, by a run from the passage index.

That a story matches such a text is a fact of the two texts.  Whether it counts, which the view `returned_stories` says,
follows from what is on record now: the verdict stands, and the story is not the one that was copied.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.sets import are_among_ascending
from neardup.ledger import AMONG, dump_list, languages, select_named_rows, story_rows, transaction
from neardup.ledger.passages import Hashes, read_common
from neardup.ledger.runs import get, put
from neardup.ledger.story_rows import pack_id
from neardup.records import Kind, PairedStory

DAYS, CHECKED = "remember_removed_days", "returned_checked"
DAY_MS = 86_400_000
MATCHED_AS = ("exact", "near", "similar", "partial", "passage")  # what is found without the texts
SHOWN = (
    "SELECT r.story_id, CAST(r.author AS TEXT) AS author, removed_id, CAST(removed_author AS TEXT) AS removed_author,"
    " removed_at, kind, similarity FROM returned_stories r"
)


class Returned(NamedTuple):
    """The version of a story, by its number, that matches a removed text; `similarity` is estimated."""

    number: int
    removed_id: int
    kind: Kind
    similarity: float


def keep_for(db: sqlite3.Connection, days: int, now: int) -> None:
    """Remember texts that are removed from now on for so many days, 0 for not at all, and delete what is older."""
    before = now - days * DAY_MS
    if (
        get(db, DAYS) == str(days)
        and not db.execute("SELECT 1 FROM removed_texts WHERE removed_at <= ? LIMIT 1", (before,)).fetchone()
    ):  # reading needs no turn
        return
    with transaction(db):
        put(db, DAYS, str(days))
        db.execute("DELETE FROM removed_texts WHERE removed_at <= ?", (before,))
        _delete_orphans(db)


def remember(db: sqlite3.Connection, ids: Sequence[int], now: int) -> None:
    """Remember those of these stories that are to be removed and are plagiarism, within the caller's transaction.

    The stories that are flagged with one of them are matches of it.
    """
    if not ids or (get(db, DAYS) or "0") == "0":
        return
    copied = db.execute(
        "SELECT later_id, json_group_array(DISTINCT iif(later_id = a, b, a)),"
        " json_group_array(DISTINCT iif(later_id = a, author_b, author_a)),"
        " max((SELECT max(verdict_id) FROM active_verdicts v WHERE v.a = f.a AND v.b = f.b)) AS verdict_id FROM flags f"
        f" WHERE (a {AMONG} OR b {AMONG}) AND later_id {AMONG} AND +status = 'plagiarism'"
        " AND copying_author IS NOT NULL GROUP BY later_id HAVING verdict_id IS NOT NULL",
        [dump_list(ids)] * 3,
    ).fetchall()
    for story_id, sources, victims, verdict_id in copied:
        db.execute(
            "INSERT OR REPLACE INTO removed_texts SELECT id, language, text_hash, simhash, signature, words, shingles,"
            " author_id, published_at, ?, ?, ?, ?, iif(p.hashes IS NULL, s.number, NULL), p.hashes"
            " FROM stories s LEFT JOIN passage_hashes p ON p.number = s.number WHERE id = ?",
            (now, verdict_id, sources, victims, story_id),
        )
        db.execute(
            "INSERT OR REPLACE INTO returned_texts SELECT s.number, ?1, f.kind, f.similarity FROM flags f"
            " CROSS JOIN stories s ON s.id = iif(f.a = ?1, f.b, f.a) WHERE (f.a = ?1 OR f.b = ?1)"
            " AND +f.status IN ('open', 'plagiarism', 'quotation')"
            f" AND f.kind {AMONG}",
            (story_id, dump_list(MATCHED_AS)),
        )


def forget(db: sqlite3.Connection, story_id: int) -> None:
    """Remove all that follows from a story that was removed on request, within the caller's transaction."""
    db.execute(
        "DELETE FROM removed_texts WHERE story_id = ?1 OR EXISTS (SELECT 1 FROM json_each(sources) WHERE value = ?1)",
        (story_id,),
    )
    _delete_orphans(db)


def _delete_orphans(db: sqlite3.Connection) -> None:
    """Remove the matches of which either text is no longer on record."""
    db.execute(
        "DELETE FROM returned_texts WHERE removed_id NOT IN (SELECT story_id FROM removed_texts)"
        " OR NOT EXISTS (SELECT 1 FROM stories s WHERE s.number = returned_texts.number)"
    )


# Comparing.


def read_all(db: sqlite3.Connection) -> tuple[FingerprintArrays, dict[int, PairedStory]]:
    """The fingerprints of the removed texts, also by the ids of their stories."""
    rows = db.execute(
        "SELECT 0, story_id, language, simhash, signature, text_hash, words, shingles FROM removed_texts"
    ).fetchall()
    name_of = languages.map_names(db)
    by_id = {
        story_id: PairedStory(story_id, name_of[language], None, text_hash, simhash, signature, words, shingles)
        for _, story_id, language, simhash, signature, text_hash, words, shingles in rows
    }
    return FingerprintArrays.of((row[:5] for row in rows), name_of), by_id


def list_without_passages(db: sqlite3.Connection) -> list[int]:
    """The numbers of the removed versions whose passage hashes are to be read from the segments."""
    return [number for (number,) in db.execute("SELECT number FROM removed_texts WHERE number IS NOT NULL")]


def put_passages(db: sqlite3.Connection, found: Mapping[int, Hashes]) -> None:
    """Record the passage hashes of removed versions, by their numbers."""
    with transaction(db):
        db.executemany(
            "UPDATE removed_texts SET passages = ?, number = NULL WHERE number = ?",
            ((hashes.tobytes(), number) for number, hashes in found.items()),
        )


def read_passages(db: sqlite3.Connection) -> dict[int, Hashes]:
    """The passage hashes of the removed texts, ascending, by the ids of their stories; common passages are left out."""
    name_of = languages.map_names(db)
    rows = db.execute("SELECT story_id, language, passages FROM removed_texts WHERE passages IS NOT NULL").fetchall()
    common = {language: read_common(db, name_of[language]) for language in {row[1] for row in rows}}
    found = {}
    for story_id, language, data in rows:
        hashes = np.frombuffer(data, np.uint32)
        found[story_id] = hashes[~are_among_ascending(hashes, common[language])]
    return found


def read_checked(db: sqlite3.Connection) -> int:
    """The number of the last version of a story that was compared with the removed texts."""
    return int(get(db, CHECKED) or 0)


def record_checked(db: sqlite3.Connection, returned: Iterable[Returned], number: int) -> None:
    """Record which versions up to a number match removed texts."""
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO returned_texts VALUES (?, ?, ?, ?)", returned)
        put(db, CHECKED, str(number))


# What is shown.


def read_of_stories(db: sqlite3.Connection, ids: Collection[int]) -> list[dict[str, Any]]:
    """The removed texts that these stories match, the most similar of each story first.

    Members: story_id, author, removed_id, removed_author, removed_at (milliseconds), kind, similarity (estimated).
    """
    rows = select_named_rows(
        db, f"{SHOWN} WHERE r.story_id {AMONG} ORDER BY similarity DESC, removed_id", (dump_list(ids),)
    )
    return rows.fetchall()


def read_accounts(db: sqlite3.Connection, author_id: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The earlier accounts of an author, and those that came later; rows of `list_accounts`."""
    author = (pack_id(author_id),)
    return _list_accounts(db, "author = ?", author), _list_accounts(db, "removed_author = ?", author)


def list_accounts(db: sqlite3.Connection, limit: int) -> list[dict[str, Any]]:
    """The authors whose stories match texts that were removed from others, those with the most stories first.

    Columns: author and removed_author (ids), stories (how many match), first_id (one of them), removed_at (the latest).
    """
    return _list_accounts(db, "true", (), limit)


def _list_accounts(
    db: sqlite3.Connection, where: str, values: tuple[object, ...], limit: int = -1
) -> list[dict[str, Any]]:
    rows = select_named_rows(
        db,
        "SELECT CAST(author AS TEXT) AS author, CAST(removed_author AS TEXT) AS removed_author,"
        " count(DISTINCT story_id) AS stories, min(story_id) AS first_id, max(removed_at) AS removed_at"
        f" FROM returned_stories WHERE author IS NOT removed_author AND {where} GROUP BY 1, 2"
        " ORDER BY stories DESC, 1, 2 LIMIT ?",
        (*values, limit),
    )
    return list(story_rows.show_ids(db, rows, ["first_id"]))
