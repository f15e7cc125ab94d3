"""Law: the clusters of a job are those of the daemon, for a chain, a star and random graphs, with works and dates."""

import random
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
from neardup.core.verify.clusters import by_story
from neardup.spark.clusters import clusters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRAPHS, SIZE = 20, 6  # random ones, of so many stories and two thirds as many edges
DATES = (None, None, 1_000, 2_000, 3_000)


def edges() -> list[tuple[int, int]]:
    chance, first = random.Random(1), 1_000
    found = [(n, n + 1) for n in range(4)]
    found += [(200, 201 + n) for n in range(9)] + [(-5, 300), (300, 301), (-7, 301)]
    for graph in range(GRAPHS):
        ids = range(first + graph * SIZE, first + (graph + 1) * SIZE)
        found += [(one, other) for one, other in (chance.sample(ids, 2) for _ in range(SIZE * 2 // 3))]
    return found


def test_clusters_are_those_of_the_daemon(spark: "SparkSession") -> None:
    chance, drawn = random.Random(2), edges()
    published = {story: chance.choice(DATES) for edge in drawn for story in edge}
    rows: list[dict[str, object]] = [
        {"story_id": one, "matched_id": other, "joins_clusters": True}
        | {"story_published_at": published[one], "matched_published_at": published[other]}
        for one, other in drawn
    ]
    rows.append({"story_id": 1, "matched_id": 1_000, "joins_clusters": False})
    schema = pa.schema(
        [("story_id", pa.int64()), ("matched_id", pa.int64()), ("joins_clusters", pa.bool_())]
        + [(f"{side}_published_at", pa.timestamp("us", tz="UTC")) for side in ("story", "matched")]
    )
    flags = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    found = clusters(flags, lambda frame, _: frame.localCheckpoint()).collect()
    actual = {row["story_id"]: (row["cluster_id"], row["cluster_size"]) for row in found}
    assert len(actual) == len(found), "a story is in two clusters"
    assert actual == by_story([(one, other, 1.0) for one, other in drawn], published)
