"""The stories that copy: the share of their words that stand in their sources, all of them together."""

import json
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from neardup.ledger.similarities import row_of
from neardup.moderation.export.columnar import schema_of, typed
from neardup.moderation.export.stories import STORIES, story_row
from neardup.pairs import NO_SPANS, Spans
from neardup.spark.columns import in_microseconds, spark_schema
from neardup.spark.session import Batches

# As the view `sources` of a ledger says: an author who is not known counts as another.
BY_OTHERS = "(story_author_id = matched_author_id) IS NOT TRUE"
OF_SOURCE = ("id", "title", "author_id", "name", "catalogue", "licence", "published_at", "updated_at")
UNDECIDED = ("verdict", "moderator", "note", "decided_at", "undone_at", "undone_by", "known_since")


def copying_stories(flags: DataFrame) -> DataFrame:
    """Flags -> the stories that copy, with the columns of the export by story."""
    by_story = flags.where(BY_OTHERS).groupBy("story_id").agg(f.collect_list(f.struct("*")).alias("flags"))
    return by_story.mapInArrow(_copying, spark_schema(in_microseconds(schema_of(STORIES))))


def _copying(batches: Batches) -> Batches:
    schema = in_microseconds(schema_of(STORIES))
    for batch in batches:
        rows = [row for flags in batch["flags"].to_pylist() if (row := row_of_story(flags)) is not None]
        yield pa.RecordBatch.from_pylist(rows, schema)


def row_of_story(flags: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of one story by its flags; None where none of its words is copied."""
    one = flags[0]
    sources = [(flag["matched_id"], flag["kind"], _spans(flag["story_spans"])) for flag in flags]
    found = row_of(one["story_id"], 0, one["story_words"], sources)
    if found is None:
        return None
    _, _, words, copied_words, similarity, count, top, top_share, kinds = found
    source = next(flag for flag in flags if flag["matched_id"] == top)
    row: dict[str, Any] = dict.fromkeys((*UNDECIDED, "top_source_known_since"))
    row |= {name: one[f"story_{name}"] for name in ("title", "author_id", "path", "name", "published_at", "updated_at")}
    row |= {f"top_source_{name}": source.get(f"matched_{name}", source.get(name)) for name in OF_SOURCE}
    row |= {
        "story_id": one["story_id"],
        "language": one["story_language"],
        "words": words,
        "copied_words": copied_words,
    }
    row |= {"similarity": similarity, "sources": count, "top_share": top_share, "kinds": kinds}
    row |= {name: _milliseconds(row[name]) for name in row if name.endswith(("published_at", "updated_at"))}
    return typed(story_row(row), STORIES)


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _spans(bounds: str | None) -> Spans:
    return NO_SPANS if bounds is None else np.array(json.loads(bounds), np.int32)
