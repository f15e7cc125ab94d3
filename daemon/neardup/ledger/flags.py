"""Flags: verified pairs."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from neardup.core.verify.clusters import Edge
from neardup.ledger import candidates, now_ms, remembered_verdicts, transaction
from neardup.ledger.selection import JOINING, Selection, conditions
from neardup.records import Candidate, Finding, Kind, Language

PAIR_COLUMNS = (
    "flag_id, kind, language, story_id, matched_id, hamming, jaccard, containment, matched_containment,"
    " longest_run_words, story_title, matched_title, story_author_id, matched_author_id, story_published_at,"
    " matched_published_at, status, flagged_at, fingerprint_version, estimated,"
    " context, context_note, context_by, context_at"
)
WORST_FIRST = "ORDER BY worst, a, b"
JOINS = f"status IN {JOINING}"
OPEN = Selection()


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
            if finding is not None and finding.kind is not None:
                news[candidate.language, finding.kind] += _flag(db, candidate, finding, finding.kind, version, now)
                continue
            db.execute(
                "UPDATE flags SET status = 'withdrawn' WHERE a = ? AND b = ?", (candidate.a.id, candidate.b.id)
            )  # it was estimated
            if finding is not None:
                candidates.put_near_miss(db, candidate, finding, now)
    return +news


def _flag(  # noqa: PLR0917 - what `decide` holds
    db: sqlite3.Connection, candidate: Candidate, finding: Finding, kind: Kind, version: str, now: int
) -> bool:
    """Write a flag, unless a verdict keeps it; whether its pair was not flagged or judged as this kind before.

    A flag that returns takes up the verdict that stands on its pair.
    """
    pair = candidate.a.id, candidate.b.id
    before = db.execute("SELECT kind, status FROM flags WHERE a = ? AND b = ?", pair).fetchone()
    shown = before is not None and before[1] != "withdrawn"
    own = remembered_verdicts.standing(db, pair)
    said = own or (None if shown else remembered_verdicts.of_decision(db, pair))
    if said is not None and not remembered_verdicts.holds(said, kind):
        said = None
    if said is not None and said.verdict in remembered_verdicts.REMEMBERED and not shown:
        remembered_verdicts.keep(db, pair, said.verdict_id, now)
    if said is not None and said is not own:
        return False
    news = said is None and not (shown and before[0] == kind)
    context = remembered_verdicts.context_of(db, pair) if news else None
    if news:
        db.execute("DELETE FROM kept WHERE a = ? AND b = ?", pair)
        db.execute("DELETE FROM flags WHERE a = ? AND b = ? AND kind <> ?", (*pair, kind))
    status = said.verdict if said else "open"
    _put(db, candidate, finding, version=version, now=now, status=status, news=news, context=context)
    return news


def _put(
    db: sqlite3.Connection,
    candidate: Candidate,
    finding: Finding,
    *,
    version: str,
    now: int,
    status: str,
    news: bool,
    context: remembered_verdicts.Standing | None,
) -> None:
    scores = finding.scores
    values = (
        candidate.a.id,
        candidate.b.id,
        finding.kind,
        finding.hamming,
        scores and scores.jaccard,
        scores and scores.containment_a,
        scores and scores.containment_b,
        scores and scores.longest_run_words,
        scores is not None and scores.estimated,
        version,
        now,
        candidate.language,
        status,
        context and context.verdict_id,
        news,
    )
    db.execute(
        "INSERT INTO flags (a, b, kind, hamming, jaccard, containment_a, containment_b, longest_run_words, estimated,"
        " fingerprint_version, flagged_at, language, status, context, author_a, author_b)"
        " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, l.number, ?13, ?14, one.author_id, other.author_id"
        " FROM stories one, stories other, languages l WHERE one.id = ?1 AND other.id = ?2 AND l.name = ?12"
        " ON CONFLICT (a, b) DO UPDATE SET kind = ?3, hamming = ?4, jaccard = ?5, containment_a = ?6,"
        " containment_b = ?7, longest_run_words = ?8, estimated = ?9, fingerprint_version = ?10,"
        " language = excluded.language, author_a = excluded.author_a, author_b = excluded.author_b, status = ?13,"
        " context = iif(?15, ?14, context),"
        " flagged_at = iif(?15, ?11, flagged_at), exported_at = iif(?15, NULL, exported_at)",
        values,
    )


def select(
    db: sqlite3.Connection, selection: Selection = OPEN, *, limit: int = -1, offset: int = 0
) -> Iterator[sqlite3.Row]:
    """The flags of a selection, one row a pair, worst first: PAIR_COLUMNS.

    `context` is the verdict, None for most, on an earlier pair of either story; `context_note`, `context_by` and
    `context_at` (milliseconds) are its note, who gave it and when.
    """
    holding, values = conditions(db, selection)
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id IN"
        f" (SELECT flag_id FROM flags WHERE {holding} {WORST_FIRST} LIMIT ? OFFSET ?) {WORST_FIRST}",
        (*values, limit, offset),
    )


def of_pair(db: sqlite3.Connection, one: int, other: int) -> dict[str, Any] | None:
    """The flag of two stories, in either order, whatever its status: a row of `pairs`; None where there is none."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id = (SELECT flag_id FROM flags WHERE a = ? AND b = ?)",
        (min(one, other), max(one, other)),
    )
    return next(map(dict, rows), None)


def count(db: sqlite3.Connection, selection: Selection = OPEN) -> int:
    """How many flags `select` gives."""
    holding, values = conditions(db, selection)
    return int(db.execute(f"SELECT count(*) FROM flags WHERE {holding}", values).fetchone()[0])


def of_cluster(db: sqlite3.Connection, story_id: int) -> list[sqlite3.Row]:
    """The flags that make the cluster of a story, as `select` gives them."""
    return list(select(db, Selection(statuses=JOINING, cluster=story_id)))


def edges(db: sqlite3.Connection) -> list[Edge]:
    """The flags that join stories, as edges of a graph: a, b and how strong it is, the largest of their scores."""
    return db.execute(f"SELECT a, b, score FROM flags WHERE {JOINS} ORDER BY a, b").fetchall()


def edges_around(db: sqlite3.Connection, story_id: int) -> list[Edge]:
    """The edges of one story's cluster."""
    holding, values = conditions(db, Selection(statuses=JOINING, cluster=story_id))
    return db.execute(f"SELECT a, b, score FROM flags WHERE {holding} ORDER BY a, b", values).fetchall()


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
    query = (
        "SELECT name, kind, count(*) FROM flags JOIN languages ON number = language WHERE status = 'open'"
        " GROUP BY 1, 2 ORDER BY 1, 2"
    )
    for language, kind, n in db.execute(query):
        out.setdefault(language, {})[kind] = n
    return out
