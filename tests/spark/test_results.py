"""Laws: clusters of a job, and what it keeps of them, are those of the daemon; a flag is filed under the language of
its lower id, a story under its own.

The clusters are of a chain, a star and random graphs, with works, dates, equal dates and stories without one.
"""

import random
from collections import defaultdict
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from neardup.config import Config, Content, Source
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.verify.clusters import POLICIES, Member, choose_kept, find_cluster_of_each
from neardup.core.verify.text import Text
from neardup.spark import results, verification
from neardup.spark.results import find_clusters, list_members

from tests.support.languages import HINDI, MARATHI, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GRAPHS, SIZE = 20, 6  # random ones, of so many stories and two thirds as many edges
DATES = (None, None, 1_000, 2_000, 3_000)  # milliseconds
WORDS = (10, 20, 30)
STORY = pa.schema(
    [(name, pa.int64()) for name in ("id", "published_at", "updated_at", "words")]
    + [
        (name, pa.string())
        for name in ("language", "title", "page_title", "author_id", "path", "name", "catalogue", "licence")
    ]
)


def edges() -> list[tuple[int, int]]:
    chance, first = random.Random(1), 1_000
    found = [(n, n + 1) for n in range(4)]
    found += [(200, 201 + n) for n in range(9)]
    for graph in range(GRAPHS):
        ids = [*range(first + graph * SIZE, first + (graph + 1) * SIZE - 2), -2 * graph - 1, -2 * graph - 2]
        found += [(left, right) for left, right in (chance.sample(ids, 2) for _ in range(SIZE * 2 // 3))]
    return found


def flags_of(spark: "SparkSession", drawn: list[tuple[int, int]], published: Mapping[int, int | None]) -> "DataFrame":
    rows: list[dict[str, object]] = [
        {"story_id": first, "matched_id": second, "joins_clusters": True}
        | {
            f"{side}_published_at": time if (time := published[story]) is None else time * 1_000
            for side, story in (("story", first), ("matched", second))
        }
        for first, second in drawn
    ]
    rows.append({"story_id": 1, "matched_id": 1_000, "joins_clusters": False})
    schema = pa.schema(
        [("story_id", pa.int64()), ("matched_id", pa.int64()), ("joins_clusters", pa.bool_())]
        + [(f"{side}_published_at", pa.timestamp("us", tz="UTC")) for side in ("story", "matched")]
    )
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def test_clusters_and_what_is_kept_of_them_are_those_of_the_daemon(spark: "SparkSession") -> None:
    from pyspark.sql.functions import lit  # noqa: PLC0415 - only these tests load it

    chance, drawn = random.Random(2), edges()
    published = {story: chance.choice(DATES) for edge in drawn for story in edge}
    words = {story: chance.choice(WORDS) for story in published}
    stories = spark.createDataFrame(
        pa.Table.from_pylist(
            [{"id": story_id, "published_at": published[story_id], "words": words[story_id]} for story_id in published],
            STORY,
        )
    )
    found = find_clusters(flags_of(spark, drawn, published), lambda frame, _: frame.localCheckpoint()).localCheckpoint()
    of_policy = [list_members(found, stories, policy).withColumn("name", lit(policy)) for policy in POLICIES]
    rows = reduce(lambda first, second: first.union(second), of_policy).collect()
    expected = find_cluster_of_each([(first, second, 1.0) for first, second in drawn], published)
    together = defaultdict[int, list[Member]](list)
    for story, (cluster, _) in expected.items():
        together[cluster].append(Member(story, published[story], words[story]))
    for policy in POLICIES:
        listed = [row for row in rows if row["name"] == policy]
        actual = {row["story_id"]: (row["cluster_id"], row["cluster_size"]) for row in listed}
        assert len(actual) == len(listed), "a story is in two clusters"
        assert actual == expected
        wanted = set[int]().union(*(choose_kept(cluster, policy) for cluster in together.values()))
        assert {row["story_id"] for row in listed if row["keep"]} == wanted, policy


CONFIG = Config(source=Source(kind="scan"), content=Content(url="file:/"))


def side(name: str, story_id: int, language: str, published_at: int) -> dict[str, Any]:
    found = fingerprint_text(TEXTS[HINDI])
    assert found is not None
    facts: dict[str, Any] = dict.fromkeys(verification.FACTS)
    facts |= {"id": story_id, "language": language, "published_at": published_at, "text": TEXTS[HINDI]}
    facts |= {column: getattr(found, column) for column in ("text_hash", "simhash", "signature", "words", "shingles")}
    return {f"{column}_{name}": value for column, value in facts.items()}


def test_a_story_keeps_its_language_in_a_flag_across_languages() -> None:
    row = side("a", 1, MARATHI, 2_000) | side("b", 2, HINDI, 1_000) | {"by_passages": True}
    [flag] = verification.make_rows([row], Text, {}, CONFIG, flagged_at=3_000)
    assert flag.keys() == set(verification.make_verified_schema().names)
    assert (flag["language"], flag["story_id"], flag["story_language"]) == (MARATHI, 1, MARATHI)
    later = side("a", 1, HINDI, 1_000) | side("b", 2, MARATHI, 2_000) | {"by_passages": True}
    [flag] = verification.make_rows([later], Text, {}, CONFIG, flagged_at=3_000)
    assert (flag["language"], flag["story_id"], flag["story_language"]) == (HINDI, 2, MARATHI)
    copying = results.make_story_row([flag])
    assert copying is not None
    assert (copying["story_id"], copying["language"], copying["similarity"]) == (2, MARATHI, 1.0)
