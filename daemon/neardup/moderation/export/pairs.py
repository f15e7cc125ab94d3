"""The row of a pair in an export, the same in every format."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from neardup.core.publication_order import Dates, earlier
from neardup.ledger.similarities import unpack_spans
from neardup.moderation.export.table import ExportRow, Table
from neardup.moderation.publication_wording import row_order
from neardup.records import rfc3339

COLUMNS = (
    "flag_id",
    "kind",
    "language",
    "story_id",
    "matched_id",
    "hamming",
    "jaccard",
    "containment",
    "matched_containment",
    "longest_run_words",
    "story_title",
    "matched_title",
    "story_author_id",
    "matched_author_id",
    "same_author",
    "story_published_at",
    "matched_published_at",
    "earlier_id",
    "status",
    "flagged_at",
    "fingerprint_version",
    "cluster_id",
    "cluster_size",
    "estimated",
    "context",
    "story_path",
    "matched_path",
    "copied_words",
    "story_name",
    "matched_name",
    "publication_order",
    "story_updated_at",
    "matched_updated_at",
    "story_known_since",
    "matched_known_since",
    "verdict",
    "moderator",
    "note",
    "decided_at",
    "undone_at",
    "undone_by",
    "catalogue",
    "licence",
)
IDS = frozenset({"flag_id", "story_id", "matched_id", "earlier_id", "cluster_id"})
TIMES = frozenset(
    {
        *(f"{side}_{date}" for side in ("story", "matched") for date in ("published_at", "updated_at", "known_since")),
        "flagged_at",
        "decided_at",
        "undone_at",
    }
)
PAIRS = Table(
    rows="pairs",
    columns=COLUMNS,
    ids=IDS,
    times=TIMES,
    floats=frozenset({"jaccard", "containment", "matched_containment"}),
    integers=frozenset({"hamming", "longest_run_words", "cluster_size", "copied_words"}),
    booleans=frozenset({"same_author", "estimated"}),
    widths={"kind": 9, "language": 12, "story_title": 40, "matched_title": 40, "publication_order": 40, "note": 40},
)
# What an import needs of a flag beside these columns; Parquet has them, since programs read it.
WHOLE_PAIRS = replace(
    PAIRS,
    columns=(*COLUMNS, "by_passages", "signals", "story_spans", "matched_spans"),
    booleans=PAIRS.booleans | {"by_passages"},
)

ClusterOfStory = Mapping[int, tuple[int, int]]  # story id -> (its first story, size) of its cluster
NO_CLUSTER = (None, None)


def earlier_of(row: Mapping[str, Any]) -> int | None:
    """The story of a row of the view `pairs` that was published before the other; None if that is not known."""
    matched = Dates(row["matched_published_at"], catalogue=row["catalogue"])
    side = earlier(matched, Dates(row["story_published_at"]))
    return None if side is None else row["matched_id" if side == "a" else "story_id"]


def export_row(row: sqlite3.Row | dict[str, Any], cluster_of: ClusterOfStory) -> ExportRow:
    """Convert a row of the view `pairs` to the columns of the export."""
    pair = dict(row)
    cluster = cluster_of.get(pair["story_id"], NO_CLUSTER)
    # a flag that was withdrawn, or decided as not similar, puts its stories in no common cluster
    share_cluster = cluster == cluster_of.get(pair["matched_id"])
    pair["cluster_id"], pair["cluster_size"] = cluster if share_cluster else NO_CLUSTER
    pair["estimated"] = bool(pair["estimated"])
    authors = pair["story_author_id"], pair["matched_author_id"]
    pair["same_author"] = authors[0] == authors[1] if None not in authors else None
    pair["earlier_id"] = earlier_of(pair)
    pair["publication_order"] = row_order(pair)
    for column in TIMES:
        pair[column] = rfc3339(pair[column])
    return {column: pair[column] for column in COLUMNS}


def whole_row(db: sqlite3.Connection, row: ExportRow) -> ExportRow:
    """A row of an export with the further columns of WHOLE_PAIRS.

    `signals` is a JSON object, and spans are JSON arrays of [start, end) in words, counted from 0; None if there are
    none.
    """
    by_passages, signals, *spans = db.execute(
        "SELECT by_passages, signals, spans_a, spans_b FROM flags WHERE flag_id = ?", (row["flag_id"],)
    ).fetchone()
    if row["story_id"] > row["matched_id"]:
        spans.reverse()
    story, matched = (None if packed is None else json.dumps(unpack_spans(packed).tolist()) for packed in spans)
    further = {"by_passages": bool(by_passages), "signals": signals, "story_spans": story, "matched_spans": matched}
    return row | further
