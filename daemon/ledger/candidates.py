"""Nominated pairs: those that wait to be judged, and the near misses, kept with their scores."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from daemon.records import Candidate, Kind, Language, Scores, Side, Verdict

SIDE = "{0}.id, {0}.path, {0}.text_hash, {0}.simhash, {0}.signature, {0}.words, {0}.shingles"
WIDTH = 7


@dataclass(frozen=True, slots=True)
class Scored:
    """A judged pair on record; `kind` is None for a near miss."""

    language: Language
    kind: Kind | None
    hamming: int
    scores: Scores | None


def nominate(db: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> None:
    """Put pairs (a < b) of stories that the ledger holds on record, to be judged, within the caller's transaction.

    A pair that is flagged already is left as it is; a near miss is judged anew.
    """
    db.executemany(
        "INSERT INTO candidates (a, b) SELECT ?1, ?2"
        " WHERE 2 = (SELECT count(*) FROM stories WHERE id IN (?1, ?2))"
        " AND NOT EXISTS (SELECT 1 FROM flags WHERE a = ?1 AND b = ?2 AND status <> 'withdrawn')"
        " ON CONFLICT DO UPDATE SET judged_at = NULL",
        pairs,
    )


def pending(db: sqlite3.Connection, after: tuple[int, int], limit: int) -> list[Candidate]:
    """The next candidates to judge after a pair, in order."""
    rows = db.execute(
        f"SELECT a.language, {SIDE.format('a')}, {SIDE.format('b')} FROM candidates c INDEXED BY candidates_pending"
        " JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b"
        " WHERE c.judged_at IS NULL AND (c.a, c.b) > (?, ?) ORDER BY c.a, c.b LIMIT ?",
        (*after, limit),
    )
    return [Candidate(Language(row[0]), Side(*row[1 : 1 + WIDTH]), Side(*row[1 + WIDTH :])) for row in rows]


def pending_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates WHERE judged_at IS NULL").fetchone()[0])


def near_miss_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates WHERE judged_at IS NOT NULL").fetchone()[0])


def take(db: sqlite3.Connection, candidate: Candidate) -> bool:
    """Strike a candidate off; whether it was there, and both its stories still have the texts that were judged."""
    a, b = candidate.a, candidate.b
    return (
        db.execute(
            "DELETE FROM candidates WHERE a = ?1 AND b = ?2 AND judged_at IS NULL"
            " AND ?3 = (SELECT text_hash FROM stories WHERE id = ?1)"
            " AND ?4 = (SELECT text_hash FROM stories WHERE id = ?2)",
            (a.id, b.id, a.text_hash, b.text_hash),
        ).rowcount
        > 0
    )


def put_near_miss(db: sqlite3.Connection, candidate: Candidate, verdict: Verdict, now: int) -> None:
    scores = verdict.scores
    assert scores is not None
    db.execute(
        "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            candidate.a.id,
            candidate.b.id,
            verdict.hamming,
            scores.jaccard,
            scores.containment_a,
            scores.containment_b,
            scores.longest_run_words,
            scores.estimated,
            now,
        ),
    )


def scored(db: sqlite3.Connection, since: int, until: int) -> Iterator[Scored]:
    """The open flags and the near misses of [since, until) (milliseconds), with their scores."""
    columns = "hamming, jaccard, containment_a, containment_b, longest_run_words, estimated"
    rows = db.execute(
        f"SELECT s.language, kind, {columns} FROM flags JOIN stories s ON s.id = a"
        " WHERE status = 'open' AND flagged_at >= ?1 AND flagged_at < ?2"
        f" UNION ALL SELECT s.language, NULL, {columns} FROM candidates JOIN stories s ON s.id = a"
        " WHERE judged_at >= ?1 AND judged_at < ?2",
        (since, until),
    )
    for language, kind, bits, jaccard, *rest in rows:
        scores = None if jaccard is None else Scores(jaccard, rest[0], rest[1], rest[2], bool(rest[3]))
        yield Scored(Language(language), Kind(kind) if kind else None, bits, scores)
