"""The members of clusters, with the columns of the export of members, and whether a policy keeps them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from neardup.core.verify.keep import Policy
from neardup.moderation.export.members import MEMBERS


def members(clustered: DataFrame, stories: DataFrame, policy: Policy) -> DataFrame:
    """Clusters (cluster_id, cluster_size, story_id) and READ -> a row for each member, with `keep`.

    The members that are kept are those of `core.verify.keep.kept`; a cluster may be too large for one list of them.
    """
    named = f.coalesce("title", "page_title", "path", f.col("id").cast("string"))
    described = (
        stories.join(clustered, stories["id"] == clustered["story_id"])
        .withColumn("title", named)
        .withColumn("nth", f.row_number().over(Window.partitionBy("cluster_id").orderBy(*_best_first(policy))))
        .withColumn("keep", (f.col("nth") == 1) | ((f.lit(policy) == "reference") & (f.col("id") < 0)))
        .withColumn("known_since", f.lit(None).cast("timestamp"))
    )
    for name in ("published_at", "updated_at"):
        described = described.withColumn(name, f.timestamp_millis(name))
    return described.select(*MEMBERS.columns)


def _best_first(policy: Policy) -> list[Column]:
    """The order in which the first member of a cluster is to be kept; with `reference`, all works are as well."""
    published = f.col("published_at")
    before: dict[Policy, Column] = {"newest": published.desc_nulls_last(), "longest": f.col("words").desc()}
    earliest_first = [(f.col("id") >= 0).asc(), published.asc_nulls_last(), f.col("id").asc()]
    return [*([before[policy]] if policy in before else []), *earliest_first]
