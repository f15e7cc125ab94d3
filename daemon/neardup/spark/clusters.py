"""Clusters: the connected components of the flags that join clusters, by rounds of joins.

Large-star and small-star: Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, "Connected components in MapReduce
and beyond" (SoCC 2014).  Each round is written to a folder, so that no plan and no memory grows with the rounds.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

Checkpoint = Callable[[DataFrame, str], DataFrame]  # writes a folder of this name, and reads it


def clusters(flags: DataFrame, checkpoint: Checkpoint) -> DataFrame:
    """Each story of a cluster with its cluster's first story, which names it, and its size.

    The first is that of `core.verify.clusters.by_story`: works are before others, and undated stories come last.
    """
    joining = flags.where("joins_clusters")
    roots = _roots(joining.select(f.col("story_id").alias("u"), f.col("matched_id").alias("v")), checkpoint)
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


def _roots(edges: DataFrame, checkpoint: Checkpoint) -> DataFrame:
    """Edges (u, v) -> each story that is not the least of its component (u), and that least one (v)."""
    state, number = None, 0
    while True:
        edges = checkpoint(_small_star(_large_star(edges)), f"edges_{number}")
        now = edges.selectExpr("count(*)", "sum(cast(xxhash64(u, v) AS decimal(38)))").first()
        if now == state:
            return edges
        state, number = now, number + 1


def _large_star(edges: DataFrame) -> DataFrame:
    """Each neighbour above a story is joined to the least of the story and its neighbours."""
    both = edges.union(edges.select("v", "u"))
    least = both.groupBy("u").agg(f.least(f.min("v"), f.col("u")).alias("least"))
    return both.join(least, "u").where("v > u").select(f.col("v").alias("u"), f.col("least").alias("v")).distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Each story, and each neighbour below it, is joined to the least of these neighbours."""
    down = edges.select(f.greatest("u", "v").alias("u"), f.least("u", "v").alias("v"))
    least = down.groupBy("u").agg(f.min("v").alias("least"))
    below = down.join(least, "u").where("v <> least").select(f.col("v").alias("u"), f.col("least").alias("v"))
    return below.union(least).distinct()
