"""Law: the rows of a heavy key are divided among tasks, and every two of its stories are compared once."""

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
from neardup.config import Config, Content, Detection, Source
from neardup.pipeline.fingerprint_file import make_schema
from neardup.spark.candidates import find_fingerprint_pairs, find_heavy_keys
from neardup.spark.session import convert_to_microseconds

from tests.support.languages import HINDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORIES, MOST, WORKS = 20, 3, 1


def test_every_two_stories_of_a_heavy_key_are_compared_once(spark: "SparkSession") -> None:
    detection = Detection(max_bucket=MOST, max_matches=STORIES)
    config = Config(source=Source(kind="scan"), content=Content(url="file:/"), detection=detection)
    row = {"language": HINDI, "text_hash": bytes(16), "simhash": bytes(16), "signature": bytes(64), "passages": b""}
    ids = range(-WORKS, STORIES - WORKS)
    columns = pa.schema([field for field in make_schema() if field.name in {"id", *row}])
    prints = spark.createDataFrame(
        pa.Table.from_pylist([row | {"id": n} for n in ids], convert_to_microseconds(columns))
    )
    heavy = find_heavy_keys(prints, config).cache()
    assert {(key_row["members"], key_row["max_bucket"]) for key_row in heavy.collect()} == {(STORIES, MOST)}
    pairs = find_fingerprint_pairs(prints, heavy, config).cache()
    found = Counter((pair["a"], pair["b"]) for pair in pairs.where("a IS NOT NULL").collect())
    assert max(found.values()) == 1, "a pair was compared in two tasks"
    assert found.keys() == {(earlier, other) for other in ids for earlier in ids if earlier < other and other >= 0}
