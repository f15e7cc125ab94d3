"""Stories that were fingerprinted elsewhere, added many at a time, with their flags, verdicts and candidates.

A story on record stays as it is.  The segment of the passage index that has the hashes of a batch is made durable
before the transaction of its stories ends.  If the process dies between the two, the segment is newer than the ledger,
and is dropped by the next process that writes.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from neardup.core.verify.suppression import Ruling
from neardup.core.verify.tiers import find_tier
from neardup.ledger import (
    AMONG,
    candidates,
    dead_letters,
    dump_list,
    first_seen,
    languages,
    now_ms,
    outbox,
    passages,
    similarities,
    stories,
    transaction,
    verdicts,
    verification,
)
from neardup.ledger.runs import owe_sweep
from neardup.ledger.stories import find_forgotten
from neardup.ledger.story_rows import pack_etag, pack_id
from neardup.ledger.verdicts import DecidedPair
from neardup.records import Assessment, Kind, Verdict

Columns = Mapping[str, Sequence[Any]]  # by name, as in a Parquet file of fingerprints; times in milliseconds
# As they stand in a row of `stories`, after its number and its language.
HASHES, COUNTS, TEXTS = ("simhash", "signature", "text_hash"), ("words", "shingles"), ("path", "title", "page_title")
STORED = (*HASHES, "updated_at", "etag", *COUNTS, "published_at", "author_id", *TEXTS, "name")
PACKED: dict[str, Callable[[Any], object]] = {"etag": pack_etag, "author_id": pack_id, "series_id": pack_id}
INSERT = f"INSERT INTO stories VALUES (?, ?, ?, {', '.join('?' * len(STORED))}, ?, ?)"


class SegmentContent(Struct, frozen=True):
    """What the segment of a batch must hold: the stories `first` to `last`, by their numbers.

    `rows` are the places in the batch of the new stories, which have the last numbers, in this order; `waiting` are
    numbers and hashes of stories that no segment holds yet.
    """

    first: int
    last: int
    rows: Sequence[int]
    waiting: Sequence[tuple[int, bytes]]


class Added(Struct):
    """How many stories were added, and how many of the others are on record with the same text.

    `changed` are on record with another text or language, and `forgotten` were forgotten on request.
    """

    added: int = 0
    known: int = 0
    changed: list[int] = field(default_factory=list)
    forgotten: int = 0


def add_stories(
    db: sqlite3.Connection, batch: Columns, held: int, write_passages: Callable[[SegmentContent], None]
) -> Added:
    """Add the stories of a batch in one transaction, and record that a sweep is owed.

    `held` is the last number that a segment holds.  `write_passages` makes a durable segment.
    """
    with transaction(db):
        done, rows = _choose_new(db, batch)
        if not rows:
            return done
        ids = [batch["id"][row] for row in rows]
        numbers = outbox.take_numbers(db, len(rows))
        now = now_ms()
        first_seen.append(db, ids, [batch["text_sha256"][row] for row in rows], now)
        since = stories.take_known_since(db, ids, now)
        number_of = languages.map_numbers(db)
        spoken = [number_of[batch["language"][row]] for row in rows]
        columns = [_pack_column(batch, name, rows) for name in STORED]
        given = (batch["known_since"][row] for row in rows)
        known = [here if there is None else min(here, there) for here, there in zip(since, given, strict=True)]
        series = _pack_column(batch, "series_id", rows)
        db.executemany(INSERT, zip(numbers, ids, spoken, *columns, known, series, strict=True))
        languages.update_counts(db, spoken, ())
        dead_letters.remove(db, list(map(str, ids)))
        owe_sweep(db, owed=True)
        first = max(passages.read_flushed_number(db), held) + 1
        write_passages(SegmentContent(first, numbers[-1], rows, passages.list_hashes(db, first - 1, -1)))
        passages.prune_hashes(db, numbers[-1])
    return done


def _choose_new(db: sqlite3.Connection, batch: Columns) -> tuple[Added, list[int]]:
    """The places of the stories to add, and the counts; of rows with the same id, the last one counts."""
    place_of = dict(zip(batch["id"], range(len(batch["id"])), strict=True))
    name_of = languages.map_names(db)
    held = db.execute(
        f"SELECT id, language, text_hash FROM stories WHERE id {AMONG}", (dump_list(place_of),)
    ).fetchall()
    gone = find_forgotten(db, place_of)
    done = Added(forgotten=len(gone))
    for story_id, language, text_hash in held:
        place = place_of.pop(story_id)
        if (batch["language"][place], batch["text_hash"][place]) == (name_of[language], text_hash):
            done.known += 1
        else:
            done.changed.append(story_id)
    rows = [place for story_id, place in place_of.items() if story_id not in gone]
    done.added = len(rows)
    return done, rows


def _pack_column(batch: Columns, name: str, rows: Sequence[int]) -> Sequence[object]:
    values, pack = batch[name], PACKED.get(name)
    chosen = values if len(rows) == len(values) else [values[row] for row in rows]
    return list(map(pack, chosen)) if pack else chosen


class GivenVerdict(Struct, frozen=True):
    """A verdict that stands; `decided_at` in milliseconds."""

    verdict: Verdict
    note: str
    moderator: str
    decided_at: int


class ImportedFlag(Struct, frozen=True):
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
    candidate = candidates.read_candidate(db, pair)
    if candidate is None:
        return False
    ruling = Ruling(row.status, None, is_new=True)
    verification.put_flag(
        db, candidate, row.assessment, row.kind, row.version, row.flagged_at, ruling, by_passages=row.by_passages
    )
    if (given := row.verdict) is not None:
        tier, language = find_tier(row.kind), languages.map_numbers(db)[candidate.language]
        shorter, longer = sorted((candidate.a.words, candidate.b.words))
        decided = DecidedPair(*pair, language, row.kind, tier.severity, tier.joins_clusters(longer, shorter))
        verdicts.put(db, [decided], given.verdict, given.note, given.moderator, given.decided_at)
    return True


def put_candidates(db: sqlite3.Connection, rows: Iterable[tuple[int, int, bool]]) -> int:
    """Record pairs to be verified, each with whether passages alone nominated it; returns how many are new."""
    with transaction(db):
        return sum(candidates.put(db, a, b, by_passages=by_passages) for a, b, by_passages in rows)
