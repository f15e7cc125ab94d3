"""Flags, verdicts and candidates that come with imported stories."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neardup.core.verify.suppression import Ruling
from neardup.core.verify.tiers import tier_of
from neardup.ledger import candidates, languages, reverification, similarities, transaction
from neardup.records import Assessment, Kind, Verdict


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """A verdict that stands; `decided_at` in milliseconds."""

    verdict: Verdict
    note: str
    moderator: str
    decided_at: int


@dataclass(frozen=True, slots=True)
class ImportedFlag:
    """A flag of the stories a < b as it stood elsewhere, of fingerprints of `version`; times in milliseconds."""

    a: int
    b: int
    kind: Kind
    assessment: Assessment
    status: str
    flagged_at: int
    version: str
    by_passages: bool
    verdict: GivenVerdict | None


def put_flags(db: sqlite3.Connection, rows: Sequence[ImportedFlag]) -> int:
    """Record flags with their scores and verdicts, in one transaction; returns how many are new.

    A pair that is flagged already, or a story of which is not on record, is left out.
    """
    with transaction(db):
        new = sum(_put(db, row) for row in rows)
        similarities.refresh(db)
    return new


def _put(db: sqlite3.Connection, row: ImportedFlag) -> bool:
    pair = row.a, row.b
    if db.execute("SELECT 1 FROM flags WHERE a = ? AND b = ?", pair).fetchone():
        return False
    candidate = candidates.of_pair(db, pair)
    if candidate is None:
        return False
    ruling = Ruling(row.status, None, is_new=True)
    reverification.put_flag(
        db,
        candidate,
        row.assessment,
        row.kind,
        row.version,
        row.flagged_at,
        ruling,
        by_passages=row.by_passages,
    )
    if (given := row.verdict) is not None:
        tier, number_of = tier_of(row.kind), languages.numbers(db)
        shorter, longer = sorted((candidate.a.words, candidate.b.words))
        values = (*pair, number_of[candidate.language], row.kind, tier.severity, tier.joins_clusters(longer, shorter))
        verdict_id = db.execute(
            "INSERT INTO verdicts (a, b, language, kind, severity, joins_clusters, verdict, note, moderator,"
            " decided_at, decision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (*values, given.verdict, given.note, given.moderator, given.decided_at),
        ).lastrowid
        db.execute("UPDATE verdicts SET decision = verdict_id WHERE verdict_id = ?", (verdict_id,))
    return True


def put_candidates(db: sqlite3.Connection, rows: Iterable[tuple[int, int, bool]]) -> int:
    """Record pairs to be verified, each with whether passages alone nominated it; returns how many are new."""
    with transaction(db):
        return sum(candidates.put(db, one, other, by_passages=by_passages) for one, other, by_passages in rows)
