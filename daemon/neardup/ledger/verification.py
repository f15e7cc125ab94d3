"""Verified pairs: how a verified candidate becomes a flag or a near miss, and when it is verified again.

A candidate counts only while both of its stories have the texts that were verified.  A pair that is a copy by the
thresholds becomes a flag, unless a verdict suppresses it.  The flag of any other pair is withdrawn; if the pair has
enough in common, it becomes a near miss, which keeps its signals for trying out other thresholds.  Once a passage
becomes common, or is no longer, the undecided flags and the near misses among its holders become candidates again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from neardup.core.verify.spans import measure_similarity
from neardup.core.verify.suppression import SUPPRESSING, ActiveVerdict, Decisions, Ruling, find_most_severe, rule
from neardup.core.verify.tiers import EXACT, SERIAL, find_tier, list_kinds_of_passages
from neardup.ledger import (
    candidates,
    languages,
    now_ms,
    passages,
    serials,
    similarities,
    transaction,
)
from neardup.ledger.passages import FoundCommon
from neardup.ledger.runs import get, owes_sweep
from neardup.ledger.similarities import pack_spans
from neardup.records import Assessment, Candidate, Kind, Language, Signals, Verdict

STORY_COLUMNS = "author_a", "author_b", "published_a", "published_b", "same_author"  # columns copied from the stories
SIGNAL_COLUMNS = (
    "hamming",
    "jaccard",
    "containment_a",
    "containment_b",
    "longest_run_words",
    "estimated",
    "signals",  # the extra ones as a JSON object, NULL where there are none
)
ALL_SIGNALS = ", ".join(SIGNAL_COLUMNS)


def record(
    db: sqlite3.Connection,
    assessed: Sequence[tuple[Candidate, Assessment | None]],
    version: str,
    revision: int | None = None,
) -> Counter[tuple[Language, Kind]]:
    """Turn verified candidates into flags or near misses, in one transaction; returns the new flags.

    A candidate without an assessment has too little in common, and is dropped.  If a story of a candidate was edited
    since the candidate was read, the candidate stays pending.  If other passages are common than at `revision`, which
    was read before they were assessed, they are verified again; none is dropped.
    """
    with transaction(db):
        is_outdated = revision is not None and passages.read_common_revision(db) != revision
        known = [(pair, assessment) for pair, assessment in assessed if assessment is not None or not is_outdated]
        new = put_verified(db, known, version)
        if is_outdated:
            candidates.request_verification(db, [(pair.a.id, pair.b.id) for pair, _ in known])
        similarities.refresh(db)
    return new


def put_verified(
    db: sqlite3.Connection, assessed: Sequence[tuple[Candidate, Assessment | None]], version: str
) -> Counter[tuple[Language, Kind]]:
    """As `record`, within the caller's transaction, which refreshes the similarities."""
    new: Counter[tuple[Language, Kind]] = Counter()
    now = now_ms()
    for candidate, assessment in assessed:
        if (by_passages := candidates.take(db, candidate)) is None:  # it is not pending, or a story has another text
            continue
        if _is_decided(db, candidate):
            continue
        kind = None if assessment is None else assessment.kind or _find_kind_by_serials(db, candidate)
        if assessment is not None and kind is not None:
            new[candidate.language, kind] += _flag(
                db, candidate, assessment, kind, version, now, by_passages=by_passages
            )
            continue
        # a flagged pair is verified again only if its flag was estimated, or if other passages are common
        db.execute("UPDATE flags SET status = 'withdrawn' WHERE a = ? AND b = ?", (candidate.a.id, candidate.b.id))
        if assessment is not None:
            put_near_misses(db, [(candidate, assessment.signals, by_passages)], now)
        else:
            _keep_place(db, candidate, now, by_passages=by_passages)
    return +new  # without zeros


def _is_decided(db: sqlite3.Connection, candidate: Candidate) -> bool:
    """Whether a verdict stands on the flag of a pair, which was open when it was to be verified again.

    A flag that was only estimated is verified all the same.
    """
    decided = "SELECT 1 FROM flags WHERE a = ? AND b = ? AND status NOT IN ('open', 'permitted', 'withdrawn')"
    return db.execute(f"{decided} AND NOT estimated", (candidate.a.id, candidate.b.id)).fetchone() is not None


def _find_kind_by_serials(db: sqlite3.Connection, near_miss: Candidate) -> Kind | None:
    """The kind of a near miss of two chapters that stand at the same place in two serials that match, else None."""
    aligned = "SELECT 1 FROM chapter_pairs WHERE a = ? AND b = ? AND is_aligned"
    return SERIAL if db.execute(aligned, (near_miss.a.id, near_miss.b.id)).fetchone() else None


def _flag(  # noqa: PLR0917 - what `record` has at hand
    db: sqlite3.Connection,
    candidate: Candidate,
    assessment: Assessment,
    kind: Kind,
    version: str,
    now: int,
    *,
    by_passages: bool,
) -> bool:
    """Write the flag of a pair, unless a verdict suppresses it; returns whether it is new."""
    pair = candidate.a.id, candidate.b.id
    ruling = make_ruling_on_pair(db, pair, kind)
    if ruling.suppressed_by is not None:
        candidates.suppress(db, pair, ruling.suppressed_by, now)
    if ruling.status is None:
        return False
    if ruling.is_new:
        db.execute("DELETE FROM suppressed_pairs WHERE a = ? AND b = ?", pair)
        # Webhooks know new flags by their ids: one that is made again gets another, unless all are made again, which a
        # backfill without lookups leaves to the sweep that it owes.
        kept = kind if get(db, "refingerprinting") or owes_sweep(db) else None
        db.execute("DELETE FROM flags WHERE a = ? AND b = ? AND kind IS NOT ?", (*pair, kept))
    put_flag(db, candidate, assessment, kind, version, now, ruling, by_passages=by_passages)
    return ruling.is_new


def put_flag(  # noqa: PLR0917 - what `_flag` has at hand
    db: sqlite3.Connection,
    candidate: Candidate,
    assessment: Assessment,
    kind: Kind,
    version: str,
    now: int,
    ruling: Ruling,
    *,
    by_passages: bool,
) -> None:
    """Insert or update the flag of a pair, flagged at `now`, within the caller's transaction.

    A flag that is on record keeps its id; `_flag` removes one that is made again.  Unless the ruling calls it new, it
    also keeps its context, and the times at which it was flagged and exported.
    """
    values = _make_flag_columns(candidate, assessment, kind, version, ruling.status, by_passages=by_passages)
    values["language"] = languages.map_numbers(db)[candidate.language]
    if ruling.is_new:
        context = _read_verdict_on_either_story(db, (candidate.a.id, candidate.b.id))
        values |= {"context": context and context.verdict_id, "exported_at": None}
    updated = [f"{column} = excluded.{column}" for column in (*values, *STORY_COLUMNS)]
    if ruling.is_new:
        updated.append("flagged_at = excluded.flagged_at")
    serials.put_chapters(db, (candidate.a.id, candidate.b.id))
    db.execute(
        f"{_insert_statement(values)} ON CONFLICT (a, b) DO UPDATE SET {', '.join(updated)}", values | {"now": now}
    )


def put_first_flags(
    db: sqlite3.Connection, assessed: Iterable[tuple[Candidate, Assessment, bool]], version: str
) -> Counter[tuple[Language, Kind]]:
    """Write the flags and near misses of a ledger that has neither flags nor verdicts; returns the flags.

    Each pair comes with whether passages alone nominated it.  Within the caller's transaction, which refreshes the
    similarities.
    """
    now, number_of, new = now_ms(), languages.map_numbers(db), Counter[tuple[Language, Kind]]()
    rows, flagged, missed = list[dict[str, object]](), set[int](), list[tuple[Candidate, Signals, bool]]()
    for candidate, assessment, by_passages in assessed:
        if (kind := assessment.kind) is None:
            missed.append((candidate, assessment.signals, by_passages))
            continue
        new[candidate.language, kind] += 1
        values = _make_flag_columns(candidate, assessment, kind, version, "open", by_passages=by_passages)
        flagged |= {candidate.a.id, candidate.b.id}
        rows.append(values | {"language": number_of[candidate.language], "now": now})
    if rows:
        serials.put_chapters(db, flagged)
        db.executemany(_insert_statement([column for column in rows[0] if column != "now"]), rows)
    put_near_misses(db, missed, now)
    return new


def _make_flag_columns(
    candidate: Candidate, assessment: Assessment, kind: Kind, version: str, status: str | None, *, by_passages: bool
) -> dict[str, object]:
    """The columns of a flag, apart from its language, its verdicts and what is copied from the stories."""
    tier = find_tier(kind)
    shorter, longer = sorted((candidate.a.words, candidate.b.words))
    return {
        "a": candidate.a.id,
        "b": candidate.b.id,
        "kind": kind,
        "severity": tier.severity,
        "strength": tier.strength(assessment.signals),
        "joins_clusters": tier.joins_clusters(longer, shorter),
        "similarity": measure_similarity(assessment, candidate.a.words, candidate.b.words),
        **make_columns(assessment.signals),
        "by_passages": by_passages or kind in list_kinds_of_passages(),
        "reuse_expected": tier.reuse_expected,
        "spans_a": pack_spans(assessment.spans_a),
        "spans_b": pack_spans(assessment.spans_b),
        "fingerprint_version": version,
        "status": status,
    }


def _insert_statement(columns: Iterable[str]) -> str:
    """The statement that inserts a flag with these columns, flagged at `:now`."""
    named = list(columns)
    return (
        f"INSERT INTO flags ({', '.join((*named, *STORY_COLUMNS))}, flagged_at)"
        f" SELECT {', '.join(f':{column}' for column in named)}, x.author_id, y.author_id, x.published_at,"
        " y.published_at, :reuse_expected AND (x.author_id = y.author_id) IS TRUE, :now"
        " FROM stories x, stories y WHERE x.id = :a AND y.id = :b"
    )


def put_near_misses(db: sqlite3.Connection, rows: Iterable[tuple[Candidate, Signals, bool]], now: int) -> None:
    """Record near misses, each with whether passages alone nominated it, within the caller's transaction."""
    columns = ("a", "b", *SIGNAL_COLUMNS, "verified_at", "by_passages")
    db.executemany(
        f"INSERT INTO candidates ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
        (
            (candidate.a.id, candidate.b.id, *make_columns(signals).values(), now, by_passages)
            for candidate, signals, by_passages in rows
        ),
    )


def _keep_place(db: sqlite3.Connection, candidate: Candidate, now: int, *, by_passages: bool) -> None:
    """Keep a pair with too little in common to be a near miss, if the story of the higher id had too many matches.

    Of these only the best were nominated.  Without this one, a match that was left out would take its place.
    """
    db.execute(
        "INSERT INTO candidates (a, b, verified_at, by_passages) SELECT ?1, ?2, ?3, ?4 FROM stories"
        " JOIN crowded_stories USING (number) WHERE id = ?2 AND is_cut",
        (candidate.a.id, candidate.b.id, now, by_passages),
    )


def count_near_misses(db: sqlite3.Connection) -> int:
    """The number of near misses."""
    return int(db.execute("SELECT count(*) FROM candidates WHERE hamming IS NOT NULL").fetchone()[0])


def put_common(db: sqlite3.Connection, found: FoundCommon) -> None:
    """Record common passages, and have the pairs among their holders verified again, within the transaction."""
    passages.record_common(db, found.passages)
    candidates.request_verification_among(db, found.holders)


class VerifiedPair(Struct, frozen=True):
    """A verified pair on record; `kind` is None for a near miss, `verdict` where no moderator has given one.

    `is_aligned` says that its stories are chapters at the same place of two serials that match.
    """

    language: Language
    kind: Kind | None
    signals: Signals
    verdict: Verdict | None
    is_aligned: bool


def list_verified_pairs(db: sqlite3.Connection, since: int, until: int) -> Iterator[VerifiedPair]:
    """The flags that are not withdrawn and the near misses of [since, until) (milliseconds)."""
    aligned = "EXISTS (SELECT 1 FROM chapter_pairs p WHERE p.a = {0}.a AND p.b = {0}.b AND is_aligned)"
    rows = db.execute(
        f"SELECT language, kind, iif(status IN ('open', 'permitted'), NULL, status), {aligned.format('flags')},"
        f" {ALL_SIGNALS} FROM flags"
        " WHERE status <> 'withdrawn' AND flagged_at >= ?1 AND flagged_at < ?2"
        f" UNION ALL SELECT s.language, NULL, NULL, {aligned.format('candidates')}, {ALL_SIGNALS} FROM candidates"
        " JOIN stories s ON s.id = a"
        " WHERE verified_at >= ?1 AND verified_at < ?2 AND hamming IS NOT NULL",
        (since, until),
    )
    name_of = languages.map_names(db)
    for language, kind, verdict, is_aligned, *columns in rows:
        signals, given = make_signals(kind, columns), Verdict(verdict) if verdict else None
        yield VerifiedPair(name_of[language], kind, signals, given, bool(is_aligned))


def make_columns(signals: Signals) -> dict[str, object]:
    """The values of SIGNAL_COLUMNS, in their order."""
    extra = json.dumps(dict(signals.extra)) if signals.extra else None
    return {name: getattr(signals, name) for name in SIGNAL_COLUMNS[:-1]} | {"signals": extra}


def make_signals(kind: Kind | None, columns: Sequence[Any]) -> Signals:
    """The values of SIGNAL_COLUMNS of a pair of this kind -> its signals."""
    hamming, jaccard, in_a, in_b, run, estimated, extra = columns
    return Signals(
        hamming, kind == EXACT, jaccard, in_a, in_b, run, bool(estimated), json.loads(extra) if extra else {}
    )


# The active verdicts, by which core.verify.suppression decides what is suppressed.


def read_active_verdict(db: sqlite3.Connection, pair: tuple[int, int]) -> ActiveVerdict | None:
    """The active verdict on a pair, a < b."""
    return _read_latest_verdict(db, "a = ? AND b = ?", *pair)


def _read_verdict_on_either_story(db: sqlite3.Connection, pair: tuple[int, int]) -> ActiveVerdict | None:
    """The latest active verdict on any pair of either of these stories: the context of a new flag."""
    return _read_latest_verdict(db, "a IN (?1, ?2) OR b IN (?1, ?2)", *pair)


def _read_latest_verdict(db: sqlite3.Connection, condition: str, *values: object) -> ActiveVerdict | None:
    row = db.execute(
        f"SELECT verdict_id, verdict, kind FROM active_verdicts WHERE {condition} ORDER BY verdict_id DESC LIMIT 1",
        values,
    ).fetchone()
    return row and ActiveVerdict(row[0], Verdict(row[1]), row[2])


def _read_decisions(db: sqlite3.Connection, story_id: int) -> Decisions:
    """The decisions on cases that suppress pairs of a story, each with its latest verdict and the most severe kind.

    They suppress no pair of two sources of one story, which need not match each other.
    """
    found: dict[tuple[int, int], ActiveVerdict] = {}
    rows = db.execute(
        "SELECT decision, coalesce(case_id, 0), verdict_id, verdict, kind FROM active_verdicts WHERE (a = ?1 OR b = ?1)"
        " AND verdict IN (?2, ?3) AND joins_clusters ORDER BY verdict_id",
        (story_id, *SUPPRESSING),
    )
    for number, case_id, verdict_id, verdict, kind in rows:
        decision = number, case_id
        earlier: Kind = found[decision].kind if decision in found else kind
        found[decision] = ActiveVerdict(verdict_id, Verdict(verdict), find_most_severe(earlier, kind))
    return found


def make_ruling_on_pair(db: sqlite3.Connection, pair: tuple[int, int], kind: Kind) -> Ruling:
    """What the verdicts on record mean for a pair, a < b, that was verified to be of this kind."""
    flagged_as = db.execute("SELECT kind FROM flags WHERE a = ? AND b = ? AND status <> 'withdrawn'", pair).fetchone()
    own = read_active_verdict(db, pair)
    undecided = own is None and flagged_as is None  # decisions count only for an undecided pair
    on_a, on_b = (_read_decisions(db, story_id) if undecided else {} for story_id in pair)
    return rule(kind, flagged_as[0] if flagged_as else None, own, (on_a, on_b))


def count_suppressed(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Suppressed pairs, by language and verdict."""
    return _count_by_verdict(db, "suppressed_pairs JOIN verdicts v USING (verdict_id) WHERE true")


def count_in_context(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Open flags with a story on which there is an earlier verdict, by language and that verdict."""
    return _count_by_verdict(db, "flags f JOIN verdicts v ON v.verdict_id = f.context WHERE f.status = 'open'")


def _count_by_verdict(db: sqlite3.Connection, rows: str) -> dict[tuple[str, str], int]:
    counted = db.execute(
        f"SELECT (SELECT name FROM languages WHERE number = v.language) AS name, v.verdict, count(*) FROM {rows}"
        " GROUP BY name, v.verdict ORDER BY name, v.verdict"
    )
    return {(language, verdict): n for language, verdict, n in counted}
