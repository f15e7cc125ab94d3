"""Flags: verified pairs."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from daemon.ledger import candidates, now_ms, transaction
from daemon.records import Candidate, Finding, Kind, Language

PAIR_COLUMNS = (
    "flag_id, kind, language, story_id, matched_id, hamming, jaccard, containment, matched_containment,"
    " longest_run_words, story_title, matched_title, story_author_id, matched_author_id, story_published_at,"
    " matched_published_at, status, flagged_at, fingerprint_version, estimated"
)
WORST_FIRST = (
    "ORDER BY CASE kind WHEN 'exact' THEN 0 WHEN 'near' THEN 1 WHEN 'similar' THEN 2 ELSE 3 END,"
    " iif(kind = 'near', hamming, 0), iif(kind = 'partial', max(containment, matched_containment), jaccard) DESC,"
    " story_id, matched_id"
)


def decide(
    db: sqlite3.Connection, judged: Sequence[tuple[Candidate, Finding | None]], version: str
) -> Counter[tuple[Language, Kind]]:
    """Turn candidates into flags or near misses, or drop them, in one transaction; counts the flags that are news.

    A candidate of which a story was edited since it was read stays pending.
    """
    news: Counter[tuple[Language, Kind]] = Counter()
    now = now_ms()
    with transaction(db):
        for candidate, finding in judged:
            if not candidates.take(db, candidate):
                continue
            pair = candidate.a.id, candidate.b.id
            if finding is not None and finding.kind is not None:
                news[candidate.language, finding.kind] += _put(db, pair, finding, version, now)
                continue
            db.execute("UPDATE flags SET status = 'withdrawn' WHERE a = ? AND b = ?", pair)  # it was estimated
            if finding is not None:
                candidates.put_near_miss(db, candidate, finding, now)
    return +news


def _put(db: sqlite3.Connection, pair: tuple[int, int], finding: Finding, version: str, now: int) -> bool:
    """Write a flag; whether its pair was not flagged as this kind before."""
    before = db.execute("SELECT kind, status FROM flags WHERE a = ? AND b = ?", pair).fetchone()
    said = before is not None and before[0] == finding.kind
    if before is not None and not said:
        db.execute("DELETE FROM flags WHERE a = ? AND b = ?", pair)
    scores = finding.scores
    values = (
        finding.kind,
        finding.hamming,
        scores and scores.jaccard,
        scores and scores.containment_a,
        scores and scores.containment_b,
        scores and scores.longest_run_words,
        scores is not None and scores.estimated,
        version,
    )
    db.execute(
        "INSERT INTO flags (a, b, kind, hamming, jaccard, containment_a, containment_b, longest_run_words, estimated,"
        " fingerprint_version, flagged_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT (a, b) DO UPDATE SET hamming = ?4, jaccard = ?5, containment_a = ?6, containment_b = ?7,"
        " longest_run_words = ?8, estimated = ?9, fingerprint_version = ?10,"
        " flagged_at = iif(status = 'withdrawn', ?11, flagged_at),"
        " exported_at = iif(status = 'withdrawn', NULL, exported_at),"
        " status = iif(status = 'withdrawn', 'open', status)",
        (*pair, *values, now),
    )
    return not said or before[1] == "withdrawn"


def edges(db: sqlite3.Connection) -> list[tuple[int, int, float]]:
    """The open flags as edges of a graph: a, b and how strong it is, the larger of their scores, 0 to 1."""
    return db.execute(
        "SELECT a, b, max(coalesce(jaccard, 1 - hamming / 128.0), coalesce(containment_a, 0),"
        " coalesce(containment_b, 0)) FROM flags WHERE status = 'open' ORDER BY a, b"
    ).fetchall()


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
