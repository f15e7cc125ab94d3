"""Laws: sorted rows are cut into whole buckets, in whatever batches they come; holders are counted across parts.

The rows of a heavy key are divided among tasks, and every two of its stories are compared once.
"""

from collections import Counter
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Config, Content, Detection, Source
from neardup.core.languages import LANGUAGES
from neardup.pipeline.fingerprint_file import make_schema
from neardup.spark import candidates
from neardup.spark.candidates import count_holders, cut_buckets, find_fingerprint_pairs, find_heavy_keys
from neardup.spark.session import convert_to_microseconds

from tests.support.languages import HINDI
from tests.support.sampling import count_examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

keys = st.lists(st.integers(0, 5), max_size=30).map(sorted)
sizes = st.integers(1, 7)
MOST_COPIES = 6
STORIES, MOST, WORKS = 20, 3, 1


def batches_of(drawn: list[int], size: int, **columns: list[int]) -> list[pa.RecordBatch]:
    table = pa.table(
        {"hash": pa.array(drawn, pa.int64()), **{name: pa.array(values) for name, values in columns.items()}}
    )
    return list(table.to_batches(max_chunksize=size))


@settings(max_examples=count_examples(60))
@given(keys, sizes, st.integers(1, 8), st.integers(1, 4))
def test_every_row_is_in_the_bucket_of_its_key(drawn: list[int], size: int, at_a_time: int, limit: int) -> None:
    seen, members = list[int](), dict[int, list[int]]()
    with patch.object(candidates, "ROWS_AT_A_TIME", at_a_time):
        for part in cut_buckets(iter(batches_of(drawn, size, row=list(range(len(drawn))))), ["hash"], limit):
            hashes, rows = part.rows["hash"].to_pylist(), part.rows["row"].to_pylist()
            for bucket, (start, stop) in enumerate(zip(part.edges, part.edges[1:], strict=False)):
                compared = part.repeated if bucket == 0 else 0
                [key] = set(hashes[start:stop])
                first = members.setdefault(key, [])
                assert rows[start : start + compared] == first[:compared], "a part lacks the first rows of its bucket"
                assert bool(first) == bool(compared), "a bucket was cut in two"
                first += rows[start + compared : stop]
                seen += rows[start + compared : stop]
    assert seen == list(range(len(drawn))), "a row is missing, or comes twice"


@settings(max_examples=count_examples(60))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=30),
    sizes,
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(1, 30),
)
def test_holders_are_counted_and_common_hashes_named_by_language(
    drawn: list[tuple[int, int]], size: int, at_a_time: int, common: int, copies: int
) -> None:
    drawn = sorted(drawn)
    hashes = [passage for passage, _ in drawn]
    counts = Counter(hashes)
    keys = [n % copies for n in range(len(drawn))]  # which stories are copies of each other
    different = Counter(passage for passage, _ in {*zip(hashes, keys, strict=True)})
    is_common = {passage for passage in counts if counts[passage] > MOST_COPIES or different[passage] > common}
    columns = {"id": list(range(len(drawn))), "language": [language for _, language in drawn], "copy_key": keys}
    with patch.multiple(candidates, ROWS_AT_A_TIME=at_a_time, MOST_COPIES=MOST_COPIES):
        found = [
            row
            for batch in count_holders(common)(iter(batches_of(hashes, size, **columns)))
            for row in batch.to_pylist()
        ]
    shared = {(passage, n) for n, passage in enumerate(hashes) if counts[passage] > 1 and passage not in is_common}
    assert {(row["hash"], row["id"]) for row in found if row["id"] is not None} == shared
    assert sorted((row["hash"], row["language"], row["holders"]) for row in found if row["id"] is None) == sorted(
        {(passage, language, counts[passage]) for passage, language in drawn if passage in is_common}
    )


def test_numbers_of_languages_fit_the_key_of_a_bucket() -> None:
    assert len(LANGUAGES) < np.iinfo(np.uint8).max


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
