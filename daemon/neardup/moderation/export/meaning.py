"""The row of a translated or retold pair in an export, the same in every format."""

import sqlite3

from neardup.core.verify.tiers import kinds_of_meaning
from neardup.errors import Misuse
from neardup.ledger.flags import Selection
from neardup.moderation.export.pairs import earlier_of
from neardup.moderation.export.table import ExportRow, Table
from neardup.records import rfc3339

TIMES = frozenset(
    {
        "story_published_at",
        "matched_published_at",
        "flagged_at",
        "story_known_since",
        "matched_known_since",
        "decided_at",
    }
)
MEANING_PAIRS = Table(
    rows="pairs",
    columns=(
        "flag_id",
        "kind",
        "margin",
        "language",
        "matched_language",
        "story_id",
        "matched_id",
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
        "model",
        "chunks",
        "story_path",
        "matched_path",
        "story_name",
        "matched_name",
        "story_known_since",
        "matched_known_since",
        "moderator",
        "note",
        "decided_at",
        "catalogue",
        "licence",
    ),
    ids=frozenset({"flag_id", "story_id", "matched_id", "earlier_id"}),
    times=TIMES,
    floats=frozenset({"margin"}),
    integers=frozenset(),
    booleans=frozenset({"same_author"}),
    widths={"kind": 10, "language": 12, "matched_language": 12, "story_title": 40, "matched_title": 40, "note": 40},
)


def is_of_meaning(selection: Selection) -> bool:
    """Whether a selection asks for translated or retold pairs.

    Raises Misuse if it asks for others as well, or has a filter that these pairs do not have.
    """
    asked = set(selection.kinds) & set(kinds_of_meaning())
    if not asked:
        return False
    if len(asked) < len(set(selection.kinds)):
        raise Misuse(f"--kind: {' and '.join(sorted(asked))} cannot be exported together with kinds of verified copies")
    for option, value in (
        ("--min-score", selection.score),
        ("--min-similarity", selection.similarity),
        ("--cluster", selection.cluster),
    ):
        if value is not None:
            raise Misuse(f"{option}: {' and '.join(sorted(asked))} pairs have none")
    return True


def meaning_row(row: sqlite3.Row) -> ExportRow:
    """Convert a row of the view `meaning_pairs` to the columns of the export.

    `chunks` is the JSON array of the aligned chunks, counted from 0: that of the lower id, that of the higher, cosine.
    """
    pair = dict(row) | {"earlier_id": earlier_of(dict(row)), "same_author": bool(row["same_author"])}
    if None in (row["story_author_id"], row["matched_author_id"]):
        pair["same_author"] = None
    for column in TIMES:
        pair[column] = rfc3339(pair[column])
    return {column: pair[column] for column in MEANING_PAIRS.columns}
