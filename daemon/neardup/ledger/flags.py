"""Flags: verified pairs that are copies by the thresholds."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from neardup.core.verify import suppression
from neardup.core.verify.clusters import Edge
from neardup.core.verify.tiers import kinds_of_passages, tier_of
from neardup.ledger import active_verdicts, candidates, languages, near_misses, now_ms, transaction
from neardup.ledger.selection import JOINING, Selection, conditions
from neardup.ledger.signals import columns_of
from neardup.ledger.spans import packed
from neardup.records import Assessment, Candidate, Kind, Language, Signals

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
OF_STORIES = "author_a", "author_b", "published_a", "published_b", "same_author"  # columns copied from the stories


def put(
    db: sqlite3.Connection, assessed: Sequence[tuple[Candidate, Assessment | None]], version: str
) -> Counter[tuple[Language, Kind]]:
    """As `record`, within the caller's transaction, which refreshes the similarities."""
    new: Counter[tuple[Language, Kind]] = Counter()
    now = now_ms()
    for candidate, assessment in assessed:
        if (by_passages := candidates.take(db, candidate)) is None:
            continue
        if assessment is not None and assessment.kind is not None:
            new[candidate.language, assessment.kind] += _flag(
                db, candidate, assessment, assessment.kind, version, now, by_passages=by_passages
            )
            continue
        # a flagged pair is verified again only if its flag was estimated: this estimate was too high
        db.execute("UPDATE flags SET status = 'withdrawn' WHERE a = ? AND b = ?", (candidate.a.id, candidate.b.id))
        if assessment is not None:
            near_misses.put(db, candidate, assessment.signals, now, by_passages=by_passages)
    return +new


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
    ruling = active_verdicts.ruling_on(db, pair, kind)
    if ruling.suppressed_by is not None:
        active_verdicts.suppress(db, pair, ruling.suppressed_by, now)
    if ruling.status is None:
        return False
    if ruling.is_new:
        db.execute("DELETE FROM suppressed_pairs WHERE a = ? AND b = ?", pair)
        db.execute("DELETE FROM flags WHERE a = ? AND b = ? AND kind <> ?", (*pair, kind))
    put_flag(db, candidate, assessment, kind, version, now, ruling, by_passages=by_passages)
    return ruling.is_new


def put_flag(  # noqa: PLR0917 - what `_flag` has at hand
    db: sqlite3.Connection,
    candidate: Candidate,
    assessment: Assessment,
    kind: Kind,
    version: str,
    now: int,
    ruling: suppression.Ruling,
    *,
    by_passages: bool,
) -> None:
    """Insert or update the flag of a pair, flagged at `now`, within the caller's transaction.

    A flag that is on record already keeps its id.  Unless the ruling calls it new, it also keeps its context, and the
    times at which it was flagged and exported.
    """
    values = _values(candidate, assessment, kind, version, ruling.status, by_passages=by_passages)
    values["language"] = languages.numbers(db)[candidate.language]
    if ruling.is_new:
        context = active_verdicts.on_either_story(db, (candidate.a.id, candidate.b.id))
        values |= {"context": context and context.verdict_id, "exported_at": None}
    updated = [f"{column} = excluded.{column}" for column in (*values, *OF_STORIES)]
    if ruling.is_new:
        updated.append("flagged_at = excluded.flagged_at")
    db.execute(f"{_insertion(values)} ON CONFLICT (a, b) DO UPDATE SET {', '.join(updated)}", values | {"now": now})


def put_first(
    db: sqlite3.Connection, assessed: Iterable[tuple[Candidate, Assessment, bool]], version: str
) -> Counter[tuple[Language, Kind]]:
    """Write the flags and near misses of a ledger that has neither flags nor verdicts; returns the flags.

    Each pair comes with whether passages alone nominated it.  Within the caller's transaction, which refreshes the
    similarities.
    """
    now, number_of, new = now_ms(), languages.numbers(db), Counter[tuple[Language, Kind]]()
    rows, missed = list[dict[str, object]](), list[tuple[Candidate, Signals, bool]]()
    for candidate, assessment, by_passages in assessed:
        if (kind := assessment.kind) is None:
            missed.append((candidate, assessment.signals, by_passages))
            continue
        new[candidate.language, kind] += 1
        values = _values(candidate, assessment, kind, version, "open", by_passages=by_passages)
        rows.append(values | {"language": number_of[candidate.language], "now": now})
    if rows:
        db.executemany(_insertion([column for column in rows[0] if column != "now"]), rows)
    near_misses.put_all(db, missed, now)
    return new


def _values(
    candidate: Candidate, assessment: Assessment, kind: Kind, version: str, status: str | None, *, by_passages: bool
) -> dict[str, object]:
    """The columns of a flag, apart from its language, its verdicts and what is copied from the stories."""
    tier = tier_of(kind)
    shorter, longer = sorted((candidate.a.words, candidate.b.words))
    return {
        "a": candidate.a.id,
        "b": candidate.b.id,
        "kind": kind,
        "severity": tier.severity,
        "strength": tier.strength(assessment.signals),
        "joins_clusters": tier.joins_clusters(longer, shorter),
        **columns_of(assessment.signals),
        "by_passages": by_passages or kind in kinds_of_passages(),
        "own_text_expected": tier.own_text_expected,
        "spans_a": packed(assessment.spans_a),
        "spans_b": packed(assessment.spans_b),
        "fingerprint_version": version,
        "status": status,
    }


def _insertion(columns: Iterable[str]) -> str:
    """The statement that inserts a flag with these columns, flagged at `:now`."""
    named = list(columns)
    return (
        f"INSERT INTO flags ({', '.join((*named, *OF_STORIES))}, flagged_at)"
        f" SELECT {', '.join(f':{column}' for column in named)}, one.author_id, other.author_id, one.published_at,"
        " other.published_at, :own_text_expected AND (one.author_id = other.author_id) IS TRUE, :now"
        " FROM stories one, stories other WHERE one.id = :a AND other.id = :b"
    )


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
