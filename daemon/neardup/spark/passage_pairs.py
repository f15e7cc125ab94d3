"""Candidates by passages: the pairs that share passage hashes, each found at the first hash that it shares.

Nearly all hashes have one holder.  So the hashes that several stories hold are found first, by rows of a few bytes, and
only these travel with their stories' fingerprints.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from neardup.config import Config
from neardup.core.candidates.key_pairs import HashBuckets, pairs_in_hash_buckets
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.records import Language
from neardup.spark.buckets import cut
from neardup.spark.columns import integers_of
from neardup.spark.fingerprint_pairs import pairs_batch
from neardup.spark.prints import PAIRS, prints_of, same_texts, table_of, unpacked
from neardup.spark.session import Batches

POSTINGS = "hash long, id long, language int"
SHARED = "hash long, id long, language int, holders long"
LISTED = "hash long, id long, language int, print binary, hashes array<bigint>"
HASH_BYTES = 4


def shared_hashes(fingerprints: DataFrame, config: Config) -> DataFrame:
    """The passage hashes that several stories hold, as SHARED.

    A row is a holder of a hash; of a common hash, a row without id for each language in which it is held.
    """
    names = list(config.registry)
    postings = fingerprints.select("id", "language", "passages").mapInArrow(_postings(names), POSTINGS)
    by_hash = postings.repartition("hash").sortWithinPartitions("hash", "id")
    return by_hash.mapInArrow(holders(config.detection.common_passage), SHARED)


def common_hashes(shared: DataFrame, config: Config) -> dict[Language, PassageHashes]:
    """The common passages of each language, ascending: four bytes for each are held by the driver."""
    names = list(config.registry)
    rows = shared.where("id IS NULL").select("language", "hash").toArrow()
    languages, hashes = rows["language"].to_numpy(), rows["hash"].to_numpy().astype(np.uint32)
    return {names[number]: np.sort(hashes[languages == number]) for number in np.unique(languages).tolist()}


def passage_pairs(fingerprints: DataFrame, shared: DataFrame, config: Config) -> DataFrame:
    """The pairs that share passages and have no similar fingerprints, as PAIRS."""
    lists = shared.where("id IS NOT NULL").groupBy("id").agg(f.sort_array(f.collect_list("hash")).alias("hashes"))
    listed = prints_of(fingerprints, config).join(lists.where(f.size("hashes") > 1), "id")
    by_hash = listed.mapInArrow(_explode, LISTED).repartition("hash").sortWithinPartitions("hash", "id")
    return by_hash.mapInArrow(_join(config), PAIRS)


def _postings(names: list[Language]) -> Callable[[Batches], Batches]:
    number_of = {str(name): number for number, name in enumerate(names)}

    def explode(batches: Batches) -> Batches:
        for batch in batches:
            passages = batch["passages"].to_pylist()
            stories = np.repeat(np.arange(len(passages)), [len(one) // HASH_BYTES for one in passages])
            languages = np.array([number_of[name] for name in batch["language"].to_pylist()], np.int32)
            hashes = np.frombuffer(b"".join(passages), "<u4").astype(np.int64)
            columns = [pa.array(hashes), batch["id"].take(pa.array(stories)), pa.array(languages[stories])]
            yield pa.RecordBatch.from_arrays(columns, ["hash", "id", "language"])

    return explode


def holders(common: int) -> Callable[[Batches], Batches]:
    """What turns sorted postings into SHARED."""

    def count(batches: Batches) -> Batches:
        open_: _Common | None = None  # a hash of which more parts may follow
        for part in cut(batches, ["hash"], common + 1):
            hashes, ids, languages = (part.rows[name].to_numpy() for name in ("hash", "id", "language"))
            each = np.repeat(np.diff(part.edges), np.diff(part.edges))
            kept = (each > 1) & (each <= common)
            yield _shared_batch(hashes[kept], ids[kept], languages[kept], each[kept])
            for bucket in np.flatnonzero(np.diff(part.edges) > common).tolist():
                rows = slice(*part.edges[bucket : bucket + 2])
                found = _Common(int(hashes[rows.start]), rows.stop - rows.start, frozenset(languages[rows].tolist()))
                if open_ is not None and open_.hash == found.hash:
                    members = open_.members + found.members - part.compared
                    found, open_ = _Common(found.hash, members, open_.languages | found.languages), None
                if open_ is not None:
                    yield open_.batch()
                open_ = found
        if open_ is not None:
            yield open_.batch()

    return count


class _Common(NamedTuple):
    """A common hash: how many stories hold it, and the numbers of their languages."""

    hash: int
    members: int
    languages: frozenset[int]

    def batch(self) -> pa.RecordBatch:
        languages = np.array(sorted(self.languages))
        size = len(languages)
        return _shared_batch(np.full(size, self.hash), None, languages, np.full(size, self.members))


def _shared_batch(hashes: Any, ids: Any, languages: Any, holders: Any) -> pa.RecordBatch:
    columns = [
        pa.array(hashes, pa.int64()),
        pa.nulls(len(hashes), pa.int64()) if ids is None else pa.array(ids, pa.int64()),
        pa.array(languages.astype(np.int32)),
        pa.array(holders, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["hash", "id", "language", "holders"])


def _explode(batches: Batches) -> Batches:
    for batch in batches:
        lists = batch["hashes"]
        stories = pa.array(np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False)))
        columns = [lists.flatten(), *(batch[name].take(stories) for name in ("id", "language", "print", "hashes"))]
        yield pa.RecordBatch.from_arrays(columns, ["hash", "id", "language", "print", "hashes"])


def _join(config: Config) -> Callable[[Batches], Batches]:
    table = table_of(config)

    def join(batches: Batches) -> Batches:
        for part in cut(batches, ["hash"], config.detection.common_passage):
            prints, ids = unpacked(part.rows), integers_of(part.rows["id"])
            lists = part.rows["hashes"].combine_chunks()
            sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
            buckets = HashBuckets(
                part.edges,
                integers_of(part.rows["hash"])[part.edges[:-1]],
                ids,
                integers_of(lists.flatten()),
                np.append(0, np.cumsum(sizes)),
                prints.arrays,
            )
            found = pairs_in_hash_buckets(buckets, table.thresholds)
            same = same_texts(prints, found.left, found.right)
            languages = prints.arrays[0][found.right]
            pairs = ids[found.left], ids[found.right]
            yield pairs_batch([*pairs, languages, None, None, found.shared, same, None])

    return join
