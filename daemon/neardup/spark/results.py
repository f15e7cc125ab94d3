"""What follows from the flags: clusters, their members, and the stories that copy.

Clusters are the connected components of the flags that join clusters, by rounds of joins.  Large-star and small-star:
Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, "Connected components in MapReduce and beyond" (SoCC 2014).
Each round is written to a folder, so that no plan and no memory grows with the rounds.

A story that copies has the share of its words that stand in its sources, all of them together.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from neardup.core.verify.clusters import Policy
from neardup.core.verify.spans import sum_up_copied
from neardup.moderation.export.formats import make_schema, type_times
from neardup.moderation.export.tables import MEMBERS, STORIES, Table, convert_story_row
from neardup.records import NO_SPANS, Spans, count_milliseconds
from neardup.spark.session import Batches, convert_to_microseconds

# As the view `sources` of a ledger says: an author who is not known counts as another.
BY_OTHERS = "(story_author_id = matched_author_id) IS NOT TRUE"
OF_SOURCE = ("id", "title", "author_id", "name", "catalogue", "licence", "published_at", "updated_at")
UNDECIDED = ("verdict", "moderator", "note", "decided_at", "undone_at", "undone_by", "hidden", "known_since")

Checkpoint = Callable[[DataFrame, str], DataFrame]  # writes a folder of this name, and reads it


def find_clusters(flags: DataFrame, checkpoint: Checkpoint) -> DataFrame:
    """Each story of a cluster with its cluster's first story, which names it, and its size.

    The first is that of `core.verify.clusters.find_cluster_of_each`: works are before others, undated stories last.
    """
    joining = flags.where("joins_clusters")
    roots = _find_roots(joining.select(f.col("story_id").alias("u"), f.col("matched_id").alias("v")), checkpoint)
    stories = [
        joining.select(f.col(f"{side}_id").alias("story_id"), f.col(f"{side}_published_at").alias("published_at"))
        for side in ("story", "matched")
    ]
    published = stories[0].union(stories[1]).groupBy("story_id").agg(f.max("published_at").alias("published_at"))
    members = published.join(roots, published["story_id"] == roots["u"], "left")
    rooted = members.select("story_id", "published_at", f.coalesce("v", "story_id").alias("root"))
    first = f.min(
        f.struct(
            (f.col("story_id") >= 0).alias("is_story"),
            f.col("published_at").isNull().alias("undated"),
            f.col("published_at"),
            f.col("story_id"),
        )
    )
    named = rooted.groupBy("root").agg(first.alias("first"), f.count("*").alias("cluster_size"))
    return rooted.join(named, "root").select(f.col("first.story_id").alias("cluster_id"), "cluster_size", "story_id")


def _find_roots(edges: DataFrame, checkpoint: Checkpoint) -> DataFrame:
    """Edges (u, v) -> each story that is not the least of its component (u), and that least one (v)."""
    state, number = None, 0
    while True:
        edges = checkpoint(_join_small_star(_join_large_star(edges)), f"edges_{number}")
        now = edges.selectExpr("count(*)", "sum(cast(xxhash64(u, v) AS decimal(38)))").first()
        if now == state:
            return edges
        state, number = now, number + 1


def _join_large_star(edges: DataFrame) -> DataFrame:
    """Each neighbour above a story is joined to the least of the story and its neighbours."""
    both = edges.union(edges.select("v", "u"))
    least = both.groupBy("u").agg(f.least(f.min("v"), f.col("u")).alias("least"))
    return both.join(least, "u").where("v > u").select(f.col("v").alias("u"), f.col("least").alias("v")).distinct()


def _join_small_star(edges: DataFrame) -> DataFrame:
    """Each story, and each neighbour below it, is joined to the least of these neighbours."""
    down = edges.select(f.greatest("u", "v").alias("u"), f.least("u", "v").alias("v"))
    least = down.groupBy("u").agg(f.min("v").alias("least"))
    below = down.join(least, "u").where("v <> least").select(f.col("v").alias("u"), f.col("least").alias("v"))
    return below.union(least).distinct()


def list_members(clustered: DataFrame, stories: DataFrame, policy: Policy) -> DataFrame:
    """Clusters (cluster_id, cluster_size, story_id) and stories (`reading.READ`) -> a row for each member, with `keep`.

    The members that are kept are those of `core.verify.keep.kept`; a cluster may be too large for one list of them.
    """
    named = f.coalesce("title", "page_title", "path", "name", f.col("id").cast("string"))
    described = (
        stories.join(clustered, stories["id"] == clustered["story_id"])
        .withColumn("title", named)
        .withColumn("nth", f.row_number().over(Window.partitionBy("cluster_id").orderBy(*_order_best_first(policy))))
        .withColumn("keep", (f.col("nth") == 1) | ((f.lit(policy) == "reference") & (f.col("id") < 0)))
        .withColumn("known_since", f.lit(None).cast("timestamp"))
    )
    for name in ("published_at", "updated_at"):
        described = described.withColumn(name, f.timestamp_millis(name))
    return described.select(*MEMBERS.columns)


def _order_best_first(policy: Policy) -> list[Column]:
    """The order in which the first member of a cluster is to be kept; with `reference`, all works are as well."""
    published = f.col("published_at")
    before: dict[Policy, Column] = {"newest": published.desc_nulls_last(), "longest": f.col("words").desc()}
    earliest_first = [(f.col("id") >= 0).asc(), published.asc_nulls_last(), f.col("id").asc()]
    return [*([before[policy]] if policy in before else []), *earliest_first]


def show_ids(frame: DataFrame, table: Table, named: DataFrame | None) -> DataFrame:
    """A frame with the columns of a table, its ids as `ledger.story_rows` shows them: texts, if stories have names.

    `named` has the columns id and name, and is None if no story has a name.
    """
    columns = frame.columns
    if named is None:
        return frame
    for column in table.story_ids:
        shown = named.select(f.col("id").alias(column), f.col("name").alias("shown"))
        frame = frame.join(shown, column, "left")
        frame = frame.withColumn(column, f.coalesce("shown", f.col(column).cast("string"))).drop("shown")
    return frame.select(columns)


def find_copying_stories(flags: DataFrame) -> DataFrame:
    """Flags -> the stories that copy, with the columns of the export by story."""
    by_story = flags.where(BY_OTHERS).groupBy("story_id").agg(f.collect_list(f.struct("*")).alias("flags"))
    return by_story.mapInArrow(_make_story_rows, from_arrow_schema(convert_to_microseconds(make_schema(STORIES))))


def _make_story_rows(batches: Batches) -> Batches:
    schema = convert_to_microseconds(make_schema(STORIES))
    for batch in batches:
        rows = [row for flags in batch["flags"].to_pylist() if (row := make_story_row(flags)) is not None]
        yield pa.RecordBatch.from_pylist(rows, schema)


def make_story_row(flags: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row of one story by its flags; None where none of its words is copied."""
    first = flags[0]
    sources = [(flag["matched_id"], flag["kind"], _parse_spans(flag["story_spans"])) for flag in flags]
    copied = sum_up_copied(first["story_words"], sources)
    if copied is None:
        return None
    source = next(flag for flag in flags if flag["matched_id"] == copied.top_source)
    row: dict[str, Any] = dict.fromkeys((*UNDECIDED, "top_source_known_since"))
    row |= {
        name: first[f"story_{name}"] for name in ("title", "author_id", "path", "name", "published_at", "updated_at")
    }
    row |= {f"top_source_{name}": source.get(f"matched_{name}", source.get(name)) for name in OF_SOURCE}
    row |= {"story_id": first["story_id"], "language": first["story_language"], "words": first["story_words"]}
    row |= {name: value for name, value in copied._asdict().items() if name != "top_source"}
    row |= {name: count_milliseconds(row[name]) for name in row if name.endswith(("published_at", "updated_at"))}
    return type_times(convert_story_row(row))


def _parse_spans(bounds: str | None) -> Spans:
    return NO_SPANS if bounds is None else np.array(json.loads(bounds), np.int32)
