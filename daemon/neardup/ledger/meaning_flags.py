"""Meaning flags: pairs of stories that say the same in other words, by their vectors.

They are no flags: nothing has verified them.  A moderator decides each in a queue of its own, and nothing else counts
them.  A pair that is flagged by its words leaves the queue, and so does one with a story whose text has changed.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from neardup.core.verify.tiers import find_tier
from neardup.errors import Conflict
from neardup.ledger import (
    Row,
    dump_list,
    join_conditions,
    languages,
    list_conditions,
    now_ms,
    select_named_rows,
    serials,
    transaction,
    verdicts,
)
from neardup.ledger.flags import OPEN, Selection
from neardup.records import Kind, Verdict

QUEUE_ORDER = "ORDER BY margin DESC, a, b"
BY_ONE_AUTHOR = "SELECT 1 FROM stories s JOIN stories m USING (author_id) WHERE s.id = ? AND m.id = ?"


class ChunkPair(NamedTuple):
    """Two chunks that belong together, counted from 0, and the cosine of their centred vectors."""

    a: int
    b: int
    cosine: float


class MeaningFlag(NamedTuple):
    """A pair, a < b: its margin, its aligned chunks, and the hashes of the texts that were compared."""

    a: int
    b: int
    kind: Kind
    margin: float
    chunks: Sequence[ChunkPair]
    text_hash_a: bytes
    text_hash_b: bytes


def put(db: sqlite3.Connection, found: Iterable[MeaningFlag], model: str, *, same_author: bool = True) -> Counter[Kind]:
    """Record the pairs that a search found, in one transaction; returns how many are new, by kind.

    Pairs of one author count if `same_author`.  A pair on record keeps its id and its time, unless a text of it was
    another then.
    """
    now, new = now_ms(), Counter[Kind]()
    with transaction(db):
        for flag in found:
            serials.put_chapters(db, (flag.a, flag.b))
            pair, hashes = (flag.a, flag.b), (flag.text_hash_a, flag.text_hash_b)
            db.execute(
                "DELETE FROM meaning_flags WHERE a = ? AND b = ? AND (text_hash_a, text_hash_b) IS NOT (?, ?)",
                (*pair, *hashes),
            )
            is_new = not db.execute("SELECT 1 FROM meaning_flags WHERE a = ? AND b = ?", pair).fetchone()
            if is_new and (same_author or not db.execute(BY_ONE_AUTHOR, pair).fetchone()):
                new[flag.kind] += 1
            db.execute(
                "INSERT INTO meaning_flags (a, b, kind, margin, chunks, model, text_hash_a, text_hash_b, flagged_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET"
                " (kind, margin, chunks, model) = (excluded.kind, excluded.margin, excluded.chunks, excluded.model)",
                (*pair, flag.kind, flag.margin, dump_list(flag.chunks), model, *hashes, now),
            )
    return new


def remove_below(db: sqlite3.Connection, least: Mapping[Kind, float]) -> int:
    """Remove the pairs below the least margin of their kind that have no verdict; returns how many those are."""
    with transaction(db):
        return db.executemany(
            "DELETE FROM meaning_flags WHERE kind = ? AND margin < ? AND NOT EXISTS"
            " (SELECT 1 FROM verdicts v WHERE v.a = meaning_flags.a AND v.b = meaning_flags.b)",
            least.items(),
        ).rowcount


def select(db: sqlite3.Connection, selection: Selection = OPEN, *, limit: int = -1, offset: int = 0) -> Iterator[Row]:
    """The pairs of a selection as rows of the view `meaning_pairs`, the widest margin first.

    Of the selection, `similarity` and `cluster` do not apply.
    """
    where, values = _make_condition(selection)
    return select_named_rows(
        db, f"SELECT * FROM meaning_pairs WHERE {where} {QUEUE_ORDER} LIMIT ? OFFSET ?", (*values, limit, offset)
    )


def count(db: sqlite3.Connection, selection: Selection = OPEN) -> int:
    """The number of pairs in a selection."""
    where, values = _make_condition(selection)
    return int(db.execute(f"SELECT count(*) FROM meaning_pairs WHERE {where}", values).fetchone()[0])


def read_pair(db: sqlite3.Connection, a: int, b: int) -> Row | None:
    """The row of two stories, in either order and of any status; None where there is none."""
    row: Row | None = select_named_rows(
        db, "SELECT * FROM meaning_pairs WHERE a = ? AND b = ?", (min(a, b), max(a, b))
    ).fetchone()
    return row


def _make_condition(selection: Selection) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the view `meaning_pairs`, with its values."""
    clauses: list[tuple[str, list[object]]] = []
    for columns, values in (
        (("status",), selection.statuses),
        (("kind",), selection.kinds),
        (("language", "matched_language"), selection.languages),
    ):
        if values:
            among = f"IN ({', '.join('?' * len(values))})"
            either = " OR ".join(f"{column} {among}" for column in columns)
            clauses.append((f"({either})", [*values] * len(columns)))
    clauses += list_conditions(
        (
            ("flagged_at >= ?", selection.since),
            ("flagged_at < ?", selection.until),
            ("catalogue = ?", selection.catalogue),
            ("? IN (a, b)", selection.story),
            ("? IN (story_author_id, matched_author_id)", selection.author),
        )
    )
    if selection.only_new:
        clauses.append(("exported_at IS NULL", []))
    if not selection.same_author:
        clauses.append(("NOT same_author", []))
    return join_conditions(clauses)


def mark_exported(db: sqlite3.Connection, flag_ids: Sequence[int]) -> None:
    """Record that these pairs have been exported."""
    with transaction(db):
        db.executemany(
            "UPDATE meaning_flags SET exported_at = ? WHERE flag_id = ? AND exported_at IS NULL",
            ((now_ms(), n) for n in flag_ids),
        )


def find_flagged_by_words(db: sqlite3.Connection, candidates: Mapping[int, Collection[int]]) -> set[tuple[int, int]]:
    """Which stories are flagged by their words with which of their candidates, as pairs with the lower id first."""
    found = set[tuple[int, int]]()
    for story_id, others in candidates.items():
        rows = db.execute(
            "SELECT a, b FROM json_each(?2) JOIN flags ON a = min(?1, value) AND b = max(?1, value)"
            " WHERE status <> 'withdrawn'",
            (story_id, dump_list(others)),
        )
        found.update(rows)
    return found


def decide(  # noqa: PLR0917 - the fields of a form, in their order
    db: sqlite3.Connection, a: int, b: int, verdict: Verdict, note: str, moderator: str, seen: int
) -> int:
    """Give a pair a verdict, in one transaction; returns the number of the decision, for `verdicts.undo`.

    `seen` is the `state` of the pair that the moderator was shown.  Raises Conflict where it has changed, or the pair
    is no longer in the queue.
    """
    with transaction(db):
        row = read_pair(db, a, b)
        if row is None:
            raise Conflict("this pair is not flagged any more")
        if identify_state(db, a, b) != seen:
            raise Conflict("another moderator has decided this pair meanwhile: look at it again")
        language, severity = languages.map_numbers(db)[row["language"]], find_tier(row["kind"]).severity
        decided = verdicts.DecidedPair(row["a"], row["b"], language, row["kind"], severity, joins_clusters=False)
        decision = verdicts.put(db, [decided], verdict, note, moderator, now_ms())
        verdicts.announce(db, decision, "verdict")
        return decision


def identify_state(db: sqlite3.Connection, a: int, b: int) -> int:
    """A number that grows with each verdict and undo on a pair."""
    row = db.execute(
        "SELECT count(*) + count(undone_at) FROM verdicts WHERE a = ? AND b = ?", (min(a, b), max(a, b))
    ).fetchone()
    return int(row[0])


def count_verdicts(db: sqlite3.Connection, band: float) -> list[Row]:
    """The active verdicts by kind and band of the margin, of each kind the widest first.

    Columns: kind, margin (the lower end of the band, a multiple of `band`), judged, confirmed (those with another
    verdict than not_similar).
    """
    return select_named_rows(
        db,
        "SELECT meaning_flags.kind, CAST(margin / ?1 AS INTEGER) * ?1 AS margin, count(*) AS judged,"
        " sum(verdict <> ?2) AS confirmed FROM meaning_flags CROSS JOIN active_verdicts USING (a, b)"
        " GROUP BY 1, 2 ORDER BY 1 DESC, 2 DESC",
        (band, Verdict.NOT_SIMILAR),
    ).fetchall()
