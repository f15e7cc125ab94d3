"""The row of a story that copies, in an export by story, the same in every format."""

import sqlite3

from neardup.moderation.export.table import ExportRow, Table
from neardup.timestamps import rfc3339

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
    ),
    ids=frozenset({"story_id", "top_source_id"}),
    times=frozenset({"published_at"}),
    floats=frozenset({"similarity", "top_share"}),
    integers=frozenset({"copied_words", "words", "sources"}),
    booleans=frozenset(),
    widths={"title": 40, "top_source_title": 40, "kinds": 20},
)


def story_row(row: sqlite3.Row) -> ExportRow:
    """Convert a row of `similarities.selected` to the columns of the export."""
    story = dict(row)
    story["published_at"] = rfc3339(story["published_at"])
    return {column: story[column] for column in STORIES.columns}
