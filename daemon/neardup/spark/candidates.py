"""Candidates by fingerprints and by passages: the pairs that share a key, each found at one key that it shares.

**Fingerprints.**  The keys of a story are the blocks of its SimHash and the bands of its signature.  The stories of a
heavy key, which more than `max_bucket` have, are divided into parts of so many, and every two parts are a task.

**Passages.**  Nearly all passage hashes have one holder.  So the hashes that several stories hold are found first, by
rows of a few bytes, and only these travel with their stories' fingerprints.

A fingerprint travels as a number of the language, and one value of 96 bytes, its print: the SimHash, the signature
(zeros where there is none) and the hash of the text.  The rows of a partition are sorted by key; a bucket, the rows of
one key, that is larger than memory passes in parts.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from neardup.config import Config
from neardup.core.candidates.banding import Indices, copy_keys
from neardup.core.candidates.key_pairs import (
    Buckets,
    HashBuckets,
    KeyTable,
    find_pairs_in_buckets,
    find_pairs_in_hash_buckets,
    make_keys,
)
from neardup.core.candidates.passage_groups import MOST_COPIES, count_copy_keys
from neardup.core.candidates.select import Arrays
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import find_distinct, find_edges
from neardup.records import Language
from neardup.spark.session import Batches, parse_schema

HELD = "key long, id long"
KEYED = "key long, id long, language int, print binary"
PART_BITS = 20  # of the number of a part; a task has two
LANGUAGE = "cast(shiftrightunsigned(key, 56) as int)"
POSTINGS = "hash long, id long, language int, copy_key int"
SHARED = "hash long, id long, language int, holders long"
WITH_HASHES = "hash long, id long, language int, print binary, hashes array<bigint>"
PASSAGE_HASH_BYTES = 4
HASH_BYTES = 16
PRINT_BYTES = HASH_BYTES + ROWS + HASH_BYTES
# Pairs: the two stories, the number of their language, the rows that agree, the bits that differ, the passage hashes
# in common, and whether both have one text; or, in a row of its own, how many pairs of a language were left out.
PAIRS = "a long, b long, language int, rows int, bits int, shared int, same_text boolean, left_out long"
ROWS_AT_A_TIME = 50_000

Octets = npt.NDArray[np.uint8]


class Prints(NamedTuple):
    """The fingerprints of n rows, in the form of the joins, and the hashes of their texts (n, 16)."""

    arrays: Arrays
    texts: Octets


def make_key_table(config: Config) -> KeyTable:
    """The thresholds of the languages, in the order of the registry, which numbers them."""
    return KeyTable.of({language: config.detection.of(language) for language in config.registry})


def make_prints(fingerprints: DataFrame, config: Config) -> DataFrame:
    """Fingerprints -> id, language and print."""
    names = f.array(*(f.lit(str(name)) for name in config.registry))
    language = (f.array_position(names, f.col("language")) - 1).cast("int")
    signature = f.coalesce(f.col("signature"), f.unhex(f.lit("00" * ROWS)))
    return fingerprints.select(
        "id", language.alias("language"), f.concat(f.col("simhash"), signature, f.col("text_hash")).alias("print")
    )


def read_octets(column: pa.ChunkedArray | pa.Array, width: int) -> Octets:
    """A column of n binary values of `width` bytes each -> (n, width)."""
    return np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(-1, width)


def read_integers(column: pa.ChunkedArray | pa.Array) -> Indices:
    """A column of n numbers -> (n,)."""
    return np.array(column.to_numpy(), np.int64)


def unpack_prints(rows: pa.Table | pa.RecordBatch) -> Prints:
    """Rows with the columns `language` and `print` -> their arrays."""
    octets = read_octets(rows["print"], PRINT_BYTES)
    simhashes = np.ascontiguousarray(octets[:, :HASH_BYTES]).view(np.uint64)
    signatures = np.ascontiguousarray(octets[:, HASH_BYTES : HASH_BYTES + ROWS])
    languages = rows["language"].to_numpy().astype(np.uint8)
    arrays = languages, simhashes, signatures, np.asarray(signatures.any(axis=1))
    return Prints(arrays, octets[:, HASH_BYTES + ROWS :])


def have_same_text(prints: Prints, left: Indices, right: Indices) -> npt.NDArray[np.bool_]:
    """Of each pair of rows, whether both have the same text."""
    return np.asarray((prints.texts[left] == prints.texts[right]).all(axis=1))


class Cut(Struct, frozen=True):
    """Rows of whole buckets, or of a part of one: bucket b is the rows from edges[b] to edges[b + 1].

    Of the first bucket, the first `repeated` rows came with an earlier part of it.
    """

    rows: pa.Table
    edges: Indices
    repeated: int


def cut_buckets(batches: Batches, keys: Sequence[str], limit: int) -> Iterator[Cut]:
    """Batches sorted by the columns `keys` -> their buckets, of rows that are equal in these.

    A bucket that is too large for memory comes in parts, each of which begins with the bucket's first `limit` rows: so
    each part is seen to be large.
    """
    held, repeated = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) < ROWS_AT_A_TIME:
            continue
        rows = pa.Table.from_batches(held)
        edges = find_edges(*(rows[key].to_numpy() for key in keys))
        last = int(edges[-2])
        if last:
            yield Cut(rows.slice(0, last), edges[:-1], repeated)
            rows, repeated = rows.slice(last), 0
        if rows.num_rows > max(2 * limit, ROWS_AT_A_TIME):
            yield Cut(rows, np.array([0, rows.num_rows]), repeated)
            rows, repeated = rows.slice(0, limit), limit
        held = rows.combine_chunks().to_batches()
    if held:
        rows = pa.Table.from_batches(held)
        yield Cut(rows, find_edges(*(rows[key].to_numpy() for key in keys)), repeated)


def find_heavy_keys(fingerprints: DataFrame, config: Config) -> DataFrame:
    """The keys that more than `max_bucket` stories have: key, members, language, max_bucket."""
    limits = f.array(*(f.lit(config.detection.of(language).max_bucket) for language in config.registry))
    counted = _list_keys(fingerprints, config).groupBy("key").agg(f.count("*").alias("members"))
    limited = counted.withColumn("language", f.expr(LANGUAGE)).withColumn("max_bucket", f.get(limits, "language"))
    return limited.where("members > max_bucket")


def find_fingerprint_pairs(fingerprints: DataFrame, heavy: DataFrame, config: Config) -> DataFrame:
    """The pairs of similar fingerprints as PAIRS; a row without a pair counts those left out in a partition."""
    keyed = make_prints(fingerprints, config).mapInArrow(_explode_keys(config, KEYED), KEYED)
    if heavy.isEmpty():
        divided = keyed.withColumn("part", f.lit(0)).withColumn("task", f.lit(0).cast("long"))
    else:
        divided = _divide(keyed, _list_keys(fingerprints, config).join(heavy.drop("language"), "key"))
    by_bucket = divided.repartition("key", "task").sortWithinPartitions("key", "task", "id")
    return by_bucket.mapInArrow(_join_prints(config), PAIRS)


def _divide(keyed: DataFrame, holders: DataFrame) -> DataFrame:
    """Rows with the column `part`, ascending by id, each once for every `task` in which its part is joined.

    Part and task are 0 but for the rows of a heavy key, of which `holders` are the stories.
    """
    ranked = holders.withColumn("nth", f.row_number().over(Window.partitionBy("key").orderBy("id")))
    last = ranked.where("nth % max_bucket = 0").groupBy("key").agg(f.sort_array(f.collect_list("id")).alias("ends"))
    part = "CASE WHEN ends IS NULL THEN 0 ELSE size(filter(ends, last -> last < id)) END"
    numbered = keyed.join(last, "key", "left").withColumn("part", f.expr(part))
    task = f"shiftleft(cast(least(part, other) AS long), {PART_BITS}) + greatest(part, other)"
    tasks = f"CASE WHEN ends IS NULL THEN array(0L) ELSE transform(sequence(0, size(ends)), other -> {task}) END"
    return numbered.withColumn("task", f.explode(f.expr(tasks))).drop("ends")


def _list_keys(fingerprints: DataFrame, config: Config) -> DataFrame:
    return make_prints(fingerprints, config).mapInArrow(_explode_keys(config, HELD), HELD)


def _explode_keys(config: Config, columns: str) -> Callable[[Batches], Batches]:
    """What turns each row into one for each of its keys, with these columns."""
    table, names = make_key_table(config), parse_schema(columns).names

    def explode(batches: Batches) -> Batches:
        for batch in batches:
            keys, stories = _make_keys(batch, table)
            yield pa.RecordBatch.from_arrays([keys, *(batch[name].take(stories) for name in names[1:])], names)

    return explode


def _make_keys(batch: pa.RecordBatch, table: Any) -> tuple[pa.Array, pa.Array]:
    """The keys of a batch, each with the index of its story."""
    languages, simhashes, signatures, signed = unpack_prints(batch).arrays
    keys, stories = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for language in find_distinct(languages).tolist():
        chosen = np.flatnonzero(languages == language)
        found, of = make_keys(simhashes[chosen], signatures[chosen], signed[chosen], table, language)
        keys.append(found)
        stories.append(chosen[of])
    return pa.array(np.concatenate(keys).view(np.int64)), pa.array(np.concatenate(stories))


def _join_prints(config: Config) -> Callable[[Batches], Batches]:
    table = make_key_table(config)
    most = max(config.detection.of(language).max_bucket for language in config.registry)

    def join(batches: Batches) -> Batches:
        left_out = np.zeros(len(table.max_matches), np.int64)
        for cut in cut_buckets(batches, ["key", "task"], 2 * most):
            prints, ids, begins = unpack_prints(cut.rows), read_integers(cut.rows["id"]), cut.edges[:-1]
            keys = read_integers(cut.rows["key"])[begins].view(np.uint64)
            buckets = Buckets(cut.edges, keys, _count_first_parts(cut), ids, prints.arrays)
            found = find_pairs_in_buckets(buckets, table)
            left_out += found.left_out
            languages = prints.arrays[0][found.right]
            same = have_same_text(prints, found.left, found.right)
            pairs = ids[found.left], ids[found.right]
            yield _make_batch(PAIRS, [*pairs, languages, found.rows, found.bits, None, same, None])
        lacking = np.flatnonzero(left_out)
        yield _make_batch(PAIRS, [None, None, lacking, None, None, None, None, left_out[lacking]])

    return join


def _count_first_parts(cut: Cut) -> Indices:
    """The rows of the first part of each bucket that has two; 0 for a part that is joined with itself."""
    tasks, parts = read_integers(cut.rows["task"]), read_integers(cut.rows["part"])
    first, second = tasks >> PART_BITS, tasks & (1 << PART_BITS) - 1
    return np.add.reduceat(((parts == first) & (first < second)).astype(np.int64), cut.edges[:-1])


def _make_batch(names: str, columns: list[Any]) -> pa.RecordBatch:
    """Columns in the order of `names`, None for one without values -> a record batch."""
    schema, size = parse_schema(names), len(next(column for column in columns if column is not None))
    arrays = [
        pa.nulls(size, kind) if column is None else pa.array(column).cast(kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def find_shared_hashes(fingerprints: DataFrame, config: Config) -> DataFrame:
    """The passage hashes that several stories hold, as SHARED.

    A row is a holder of a hash; of a common hash, a row without id for each language in which it is held.
    """
    names = list(config.registry)
    columns = "id", "language", "passages", "simhash", "signature"
    postings = fingerprints.select(*columns).mapInArrow(_explode_postings(names), POSTINGS)
    by_hash = postings.repartition("hash").sortWithinPartitions("hash", "id")
    return by_hash.mapInArrow(count_holders(config.detection.common_passage), SHARED)


def collect_common_hashes(shared: DataFrame, config: Config) -> dict[Language, PassageHashes]:
    """The common passages of each language, ascending: four bytes for each are held by the driver."""
    names = list(config.registry)
    rows = shared.where("id IS NULL").select("language", "hash").toArrow()
    languages, hashes = rows["language"].to_numpy(), rows["hash"].to_numpy().astype(np.uint32)
    return {names[number]: np.sort(hashes[languages == number]) for number in find_distinct(languages).tolist()}


def find_passage_pairs(fingerprints: DataFrame, shared: DataFrame, config: Config) -> DataFrame:
    """The pairs that share passages and have no similar fingerprints, as PAIRS."""
    lists = shared.where("id IS NOT NULL").groupBy("id").agg(f.sort_array(f.collect_list("hash")).alias("hashes"))
    listed = make_prints(fingerprints, config).join(lists.where(f.size("hashes") > 1), "id")
    by_hash = listed.mapInArrow(_explode_hashes, WITH_HASHES).repartition("hash").sortWithinPartitions("hash", "id")
    return by_hash.mapInArrow(_join_hashes(config), PAIRS)


def _explode_postings(names: list[Language]) -> Callable[[Batches], Batches]:
    number_of = {str(name): number for number, name in enumerate(names)}

    def explode(batches: Batches) -> Batches:
        for batch in batches:
            passages = batch["passages"].to_pylist()
            stories = np.repeat(np.arange(len(passages)), [len(hashes) // PASSAGE_HASH_BYTES for hashes in passages])
            languages = np.array([number_of[name] for name in batch["language"].to_pylist()], np.int32)
            hashes = np.frombuffer(b"".join(passages), "<u4").astype(np.int64)
            keys = copy_keys(batch["simhash"].to_pylist(), batch["signature"].to_pylist()).view(np.int32)
            ids = batch["id"].to_numpy()
            yield _make_batch(POSTINGS, [hashes, ids[stories], languages[stories], keys[stories]])

    return explode


def count_holders(common: int) -> Callable[[Batches], Batches]:
    """What turns sorted postings into SHARED."""
    most = max(common, MOST_COPIES)

    def count(batches: Batches) -> Batches:
        open_: _CommonHash | None = None  # a hash of which more parts may follow
        for part in cut_buckets(batches, ["hash"], most + 1):
            hashes, ids, languages, keys = (
                part.rows[name].to_numpy() for name in ("hash", "id", "language", "copy_key")
            )
            sizes = np.diff(part.edges)
            different = count_copy_keys(np.repeat(np.arange(len(sizes)), sizes), keys.astype(np.uint32), len(sizes))
            is_common = (sizes > most) | (different > common)
            each = np.repeat(sizes, sizes)
            kept = (each > 1) & ~np.repeat(is_common, sizes)
            yield _make_batch(SHARED, [hashes[kept], ids[kept], languages[kept], each[kept]])
            for bucket in np.flatnonzero(is_common).tolist():
                rows = slice(*part.edges[bucket : bucket + 2])
                found = _CommonHash(
                    int(hashes[rows.start]), rows.stop - rows.start, frozenset(languages[rows].tolist())
                )
                if open_ is not None and open_.hash == found.hash:
                    members = open_.members + found.members - part.repeated
                    found, open_ = _CommonHash(found.hash, members, open_.languages | found.languages), None
                if open_ is not None:
                    yield open_.batch()
                open_ = found
        if open_ is not None:
            yield open_.batch()

    return count


class _CommonHash(NamedTuple):
    """A common hash: how many stories hold it, and the numbers of their languages."""

    hash: int
    members: int
    languages: frozenset[int]

    def batch(self) -> pa.RecordBatch:
        languages = np.array(sorted(self.languages))
        size = len(languages)
        return _make_batch(SHARED, [np.full(size, self.hash), None, languages, np.full(size, self.members)])


def _explode_hashes(batches: Batches) -> Batches:
    for batch in batches:
        lists = batch["hashes"]
        stories = pa.array(np.repeat(np.arange(len(lists)), lists.value_lengths().to_numpy(zero_copy_only=False)))
        columns = [lists.flatten(), *(batch[name].take(stories) for name in ("id", "language", "print", "hashes"))]
        yield pa.RecordBatch.from_arrays(columns, ["hash", "id", "language", "print", "hashes"])


def _join_hashes(config: Config) -> Callable[[Batches], Batches]:
    table = make_key_table(config)

    def join(batches: Batches) -> Batches:
        for part in cut_buckets(batches, ["hash"], max(config.detection.common_passage, MOST_COPIES)):
            prints, ids = unpack_prints(part.rows), read_integers(part.rows["id"])
            lists = part.rows["hashes"].combine_chunks()
            sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
            buckets = HashBuckets(
                part.edges,
                read_integers(part.rows["hash"])[part.edges[:-1]],
                ids,
                read_integers(lists.flatten()),
                np.append(0, np.cumsum(sizes)),
                prints.arrays,
            )
            found = find_pairs_in_hash_buckets(buckets, table.thresholds)
            same = have_same_text(prints, found.left, found.right)
            languages = prints.arrays[0][found.right]
            pairs = ids[found.left], ids[found.right]
            yield _make_batch(PAIRS, [*pairs, languages, None, None, found.shared, same, None])

    return join
