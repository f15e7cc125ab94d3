"""Candidates that wait to be judged, and the flags they became."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from daemon.ledger import now_ms, transaction
from daemon.records import Candidate, Flag, Kind, Language

PAIR_COLUMNS = (
    "flag_id, kind, language, story_id, matched_id, hamming, jaccard, containment, matched_containment,"
    " longest_run_words, story_title, matched_title, story_author_id, matched_author_id, story_published_at,"
    " matched_published_at, status, flagged_at, fingerprint_version"
)
WORST_FIRST = "ORDER BY CASE kind WHEN 'exact' THEN 0 ELSE 1 END, hamming, story_id, matched_id"


def pending(db: sqlite3.Connection, limit: int) -> list[Candidate]:
    """The next candidates to judge."""
    rows = db.execute(
        "SELECT c.a, c.b, a.language, a.text_hash, b.text_hash, a.simhash, b.simhash, a.words"
        " FROM candidates c JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b LIMIT ?",
        (limit,),
    )
    return [Candidate(a, b, Language(language), *rest) for a, b, language, *rest in rows]


def pending_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates").fetchone()[0])


def decide(
    db: sqlite3.Connection, judged: Sequence[tuple[Candidate, Flag | None]], version: str
) -> Counter[tuple[Language, Kind]]:
    """Turn candidates into flags, or drop them, in one transaction; counts the flags that are news.

    A candidate of which a story was edited since it was read stays pending.
    """
    news: Counter[tuple[Language, Kind]] = Counter()
    with transaction(db):
        for candidate, flag in judged:
            taken = db.execute(
                "DELETE FROM candidates WHERE a = ?1 AND b = ?2 AND ?3 = (SELECT text_hash FROM stories WHERE id = ?1)"
                " AND ?4 = (SELECT text_hash FROM stories WHERE id = ?2)",
                (candidate.a, candidate.b, candidate.text_hash_a, candidate.text_hash_b),
            ).rowcount
            if taken and flag is not None and _put(db, flag, version):
                news[candidate.language, flag.kind] += 1
    return news


def _put(db: sqlite3.Connection, flag: Flag, version: str) -> bool:
    """Write a flag; whether its pair was not flagged as this kind before."""
    before = db.execute("SELECT kind FROM flags WHERE a = ? AND b = ?", (flag.a, flag.b)).fetchone()
    scores = (flag.kind, flag.hamming, flag.jaccard, flag.containment_a, flag.containment_b, flag.longest_run_words)
    if before is not None and before[0] == flag.kind:
        db.execute(
            "UPDATE flags SET kind = ?, hamming = ?, jaccard = ?, containment_a = ?, containment_b = ?,"
            " longest_run_words = ?, fingerprint_version = ? WHERE a = ? AND b = ?",
            (*scores, version, flag.a, flag.b),
        )
        opened = db.execute(
            "UPDATE flags SET status = 'open', flagged_at = ?, exported_at = NULL"
            " WHERE a = ? AND b = ? AND status = 'withdrawn'",
            (now_ms(), flag.a, flag.b),
        )
        return opened.rowcount > 0
    db.execute("DELETE FROM flags WHERE a = ? AND b = ?", (flag.a, flag.b))
    db.execute(
        "INSERT INTO flags (kind, hamming, jaccard, containment_a, containment_b, longest_run_words,"
        " fingerprint_version, a, b, flagged_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*scores, version, flag.a, flag.b, now_ms()),
    )
    return True


def open_pairs(
    db: sqlite3.Connection, *, only_new: bool = False, since: int = 0, limit: int = -1
) -> Iterator[sqlite3.Row]:
    """The open flags, one row a pair, worst first; those flagged at or after `since`."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    fresh = "AND exported_at IS NULL" if only_new else ""
    return cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE status = 'open' AND flagged_at >= ? {fresh} {WORST_FIRST} LIMIT ?",
        (since, limit),
    )


def mark_exported(db: sqlite3.Connection, flag_ids: Sequence[int]) -> None:
    """Remember that an export has given these flags."""
    with transaction(db):
        db.executemany(
            "UPDATE flags SET exported_at = ? WHERE flag_id = ? AND exported_at IS NULL",
            ((now_ms(), n) for n in flag_ids),
        )


def counts(db: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """Open flags by language and kind."""
    out: dict[str, dict[str, int]] = {}
    query = "SELECT language, kind, count(*) FROM pairs WHERE status = 'open' GROUP BY 1, 2 ORDER BY 1, 2"
    for language, kind, n in db.execute(query):
        out.setdefault(language, {})[kind] = n
    return out
