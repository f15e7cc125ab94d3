"""Rows of a Parquet file of flags or candidates -> what the ledger records of them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from neardup.core.verify.tiers import COPIED_WORDS, EXACT, kinds_of_passages, tier_of
from neardup.errors import Misuse
from neardup.ledger.imported_pairs import GivenVerdict, ImportedFlag
from neardup.pairs import DECIDING, NO_SPANS, Assessment, Signals, Spans, Verdict

Row = Mapping[str, Any]
OPEN, WITHDRAWN = "open", "withdrawn"


def flag_of(row: Row, version: str, now: int) -> ImportedFlag | None:
    """The flag of a row of an export of pairs; None for one that was withdrawn.

    `version` and `now` (milliseconds) are for rows that do not say by which fingerprints and when they were flagged.
    Raises Misuse for a row that describes no flag.
    """
    try:
        status = row.get("status") or OPEN
        return None if status == WITHDRAWN else _flag(row, status, version, now)
    except (KeyError, TypeError, ValueError) as error:
        raise Misuse(f"a row of flags is not what an export writes: {type(error).__name__} {error}") from None


def _flag(row: Row, status: str, version: str, now: int) -> ImportedFlag:
    kind, is_turned = tier_of(row["kind"]).kind, row["story_id"] > row["matched_id"]
    containments, spans = [row.get("containment"), row.get("matched_containment")], _spans_of(row)
    if is_turned:
        containments.reverse()
        spans.reverse()
    extra = json.loads(row.get("signals") or "{}")
    if row.get("copied_words") is not None:
        extra[COPIED_WORDS] = row["copied_words"]
    signals = Signals(
        row["hamming"],
        kind == EXACT,
        row.get("jaccard"),
        containments[0],
        containments[1],
        row.get("longest_run_words"),
        bool(row.get("estimated")),
        extra,
    )
    by_passages = row.get("by_passages")
    return ImportedFlag(
        min(row["story_id"], row["matched_id"]),
        max(row["story_id"], row["matched_id"]),
        kind,
        Assessment(kind, signals, *spans),
        OPEN if status == OPEN else Verdict(status).value,
        _milliseconds(row.get("flagged_at")) or now,
        row.get("fingerprint_version") or version,
        kind in kinds_of_passages() if by_passages is None else by_passages,
        _verdict(row, now),
    )


def _verdict(row: Row, now: int) -> GivenVerdict | None:
    """The verdict that stands, if it decides the pair."""
    if row.get("undone_at") is not None or row.get("verdict") not in DECIDING:
        return None
    decided_at = _milliseconds(row.get("decided_at")) or now
    return GivenVerdict(Verdict(row["verdict"]), row.get("note") or "", row.get("moderator") or "", decided_at)


def candidate_of(row: Row) -> tuple[int, int, bool]:
    """The two stories of a row of candidates, and whether passages alone nominated the pair.  Raises Misuse."""
    try:
        return int(row["story_id"]), int(row["matched_id"]), bool(row.get("by_passages"))
    except (KeyError, TypeError, ValueError) as error:
        raise Misuse(f"a row of candidates names no two stories: {type(error).__name__} {error}") from None


def _spans_of(row: Row) -> list[Spans]:
    return [
        np.array(json.loads(text), np.int32).reshape(-1, 2) if (text := row.get(name)) else NO_SPANS
        for name in ("story_spans", "matched_spans")
    ]


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)
