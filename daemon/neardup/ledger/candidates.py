"""Nominated pairs: those that wait to be judged, and the near misses, kept with their scores."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neardup.ledger import languages, now_ms, remembered_verdicts
from neardup.records import Candidate, Finding, Kind, Language, Scores, Side, Verdict

SIDE = "{0}.id, {0}.path, {0}.text_hash, {0}.simhash, {0}.signature, {0}.words, {0}.shingles"
WIDTH = 7


@dataclass(frozen=True, slots=True)
class Scored:
    """A judged pair on record; `kind` is None for a near miss, `verdict` where no moderator has said anything."""

    language: Language
    kind: Kind | None
    hamming: int
    scores: Scores | None
    verdict: Verdict | None


class Matches(NamedTuple):
    """What a story was nominated with, best first, and how many matches of a story are kept."""

    story_id: int
    ids: Sequence[int]
    most: int


def nominate(db: sqlite3.Connection, nominated: Matches) -> int:
    """Put a story's matches on record, to be judged, within the caller's transaction; counts those left out.

    Neither side may come by more than `most`, of open flags and candidates: what was judged by a moderator
    takes no room.  But a story all of whose matches are full is still joined to the best of them, so that the
    thousandth copy of a template costs one flag and is not missed.  For the same reason, of the stories that
    a verdict calls a template, it is joined to the best alone; the others are kept by that verdict.  A pair that
    is flagged already is left as it is, unless it was only estimated; a near miss is judged anew.
    """
    story_id, ids, most = nominated
    if not ids:
        return 0
    now, had = now_ms(), _matches(db, story_id, most)
    room, full = most - had, []
    said = _said(db, story_id, ids)
    joined = any(status is not None and template is not None for status, template in said.values())
    for match in ids:
        status, template = said[match]
        if status is not None:
            put(db, story_id, match)
        elif joined and template is not None:
            remembered_verdicts.keep(db, _pair(story_id, match), template, now)
        elif room > 0 and _matches(db, match, most) < most:
            joined |= template is not None
            room -= put(db, story_id, match)
        else:
            full.append(match)
    if len(full) == len(ids) and not had:
        put(db, story_id, full.pop(0))
    return len(full)


def _matches(db: sqlite3.Connection, story_id: int, most: int) -> int:
    """How many open flags a story is in, or waits to be in; no more than `most` are counted."""
    unsaid = (
        "judged_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM verdicts v WHERE v.a = t.a AND v.b = t.b AND undone_at IS NULL)"
    )
    counted = " UNION ALL ".join(
        f"SELECT 1 FROM {table} t WHERE {side} = ?1 AND {holds}"
        for table, holds in (("flags", "+status = 'open'"), ("candidates", unsaid))  # +: not by the index of all open
        for side in "ab"
    )
    return int(db.execute(f"SELECT count(*) FROM ({counted} LIMIT ?2)", (story_id, most)).fetchone()[0])


def _said(db: sqlite3.Connection, story_id: int, ids: Sequence[int]) -> dict[int, tuple[str | None, int | None]]:
    """Each match -> the status of its flag with the story, or the verdict that outlived it; who calls it a template.

    None for a pair that nobody has flagged; None for a story of which no pair stands as judged a template.
    """
    pair = "a = min(value, ?1) AND b = max(value, ?1)"
    rows = db.execute(
        f"SELECT value, coalesce((SELECT status FROM flags WHERE {pair} AND status <> 'withdrawn'),"
        f" (SELECT verdict FROM standing WHERE {pair})),"
        " (SELECT max(verdict_id) FROM standing WHERE (a = value OR b = value) AND verdict = ?2) FROM json_each(?3)",
        (story_id, Verdict.TEMPLATE, json.dumps(list(ids))),
    )
    return {match: (status, template) for match, status, template in rows}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def put(db: sqlite3.Connection, one: int, other: int) -> int:
    """1 for a pair that is to be judged now and was not before, 0 otherwise; also for one that a verdict keeps."""
    return db.execute(
        "INSERT INTO candidates (a, b) SELECT ?1, ?2"
        " WHERE 2 = (SELECT count(*) FROM stories WHERE id IN (?1, ?2)) AND NOT EXISTS"
        " (SELECT 1 FROM flags WHERE a = ?1 AND b = ?2 AND status <> 'withdrawn' AND NOT estimated)"
        " AND NOT EXISTS (SELECT 1 FROM kept WHERE a = ?1 AND b = ?2)"
        " ON CONFLICT DO UPDATE SET judged_at = NULL WHERE judged_at IS NOT NULL",
        _pair(one, other),
    ).rowcount


def pending(db: sqlite3.Connection, after: tuple[int, int], limit: int) -> list[Candidate]:
    """The next candidates to judge after a pair, in order."""
    rows = db.execute(
        f"SELECT a.language, {SIDE.format('a')}, {SIDE.format('b')} FROM candidates c INDEXED BY candidates_pending"
        " JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b"
        " WHERE c.judged_at IS NULL AND (c.a, c.b) > (?, ?) ORDER BY c.a, c.b LIMIT ?",
        (*after, limit),
    )
    name_of = languages.names(db)
    return [Candidate(name_of[row[0]], Side(*row[1 : 1 + WIDTH]), Side(*row[1 + WIDTH :])) for row in rows]


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


def put_near_miss(db: sqlite3.Connection, candidate: Candidate, finding: Finding, now: int) -> None:
    scores = finding.scores
    assert scores is not None
    db.execute(
        "INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            candidate.a.id,
            candidate.b.id,
            finding.hamming,
            scores.jaccard,
            scores.containment_a,
            scores.containment_b,
            scores.longest_run_words,
            scores.estimated,
            now,
        ),
    )


def scored(db: sqlite3.Connection, since: int, until: int) -> Iterator[Scored]:
    """The flags that are not withdrawn and the near misses of [since, until) (milliseconds), with their scores."""
    columns = "hamming, jaccard, containment_a, containment_b, longest_run_words, estimated"
    rows = db.execute(
        f"SELECT language, kind, nullif(status, 'open'), {columns} FROM flags"
        " WHERE status <> 'withdrawn' AND flagged_at >= ?1 AND flagged_at < ?2"
        f" UNION ALL SELECT s.language, NULL, NULL, {columns} FROM candidates JOIN stories s ON s.id = a"
        " WHERE judged_at >= ?1 AND judged_at < ?2",
        (since, until),
    )
    name_of = languages.names(db)
    for language, kind, said, bits, jaccard, *rest in rows:
        scores = None if jaccard is None else Scores(jaccard, rest[0], rest[1], rest[2], bool(rest[3]))
        yield Scored(name_of[language], Kind(kind) if kind else None, bits, scores, Verdict(said) if said else None)
