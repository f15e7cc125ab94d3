"""The row of a story that copies, in an export by story, the same in every format."""

import sqlite3
from typing import Any

from neardup.moderation.export.table import ExportRow, Table
from neardup.moderation.publication_wording import top_source_order
from neardup.records import rfc3339

TIMES = frozenset({"published_at", "updated_at", "known_since", "decided_at", "undone_at"})
STORIES = Table(
    rows="stories",
    columns=(
        "story_id",
        "language",
        "title",
        "author_id",
        "published_at",
        "similarity",
        "copied_words",
        "words",
        "sources",
        "top_source_id",
        "top_source_title",
        "top_source_author_id",
        "top_share",
        "kinds",
        "path",
        "name",
        "top_source_name",
        "publication_order",
        "updated_at",
        "known_since",
        "verdict",
        "moderator",
        "note",
        "decided_at",
        "undone_at",
        "undone_by",
        "top_source_catalogue",
        "top_source_licence",
    ),
    ids=frozenset({"story_id", "top_source_id"}),
    times=TIMES,
    floats=frozenset({"similarity", "top_share"}),
    integers=frozenset({"copied_words", "words", "sources"}),
    booleans=frozenset(),
    widths={"title": 40, "top_source_title": 40, "kinds": 20, "publication_order": 40, "note": 40},
)


def story_row(row: sqlite3.Row | dict[str, Any]) -> ExportRow:
    """Convert a row of `similarities.select` to the columns of the export."""
    story = dict(row)
    story["publication_order"] = top_source_order(story)
    for column in TIMES:
        story[column] = rfc3339(story[column])
    return {column: story[column] for column in STORIES.columns}
