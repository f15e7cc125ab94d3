"""Fingerprints as the pair stages carry them, and the buckets that partitions are cut into.

A fingerprint is a number of the language, and one value of 96 bytes, its print: the SimHash, the signature (zeros where
there is none) and the hash of the text.  The rows of a partition are sorted by key; a bucket, the rows of one key, that
is larger than memory passes in parts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from neardup.config import Config
from neardup.core.candidates.key_pairs import KeyTable, find_edges
from neardup.core.candidates.select import Arrays
from neardup.core.fingerprint.minhash import ROWS
from neardup.spark.session import Batches

HASH_BYTES = 16
PRINT_BYTES = HASH_BYTES + ROWS + HASH_BYTES
# Pairs: the two stories, the number of their language, the rows that agree, the bits that differ, the passage hashes
# in common, and whether both have one text; or, in a row of its own, how many pairs of a language were left out.
PAIRS = "a long, b long, language int, rows int, bits int, shared int, same_text boolean, left_out long"
ROWS_AT_A_TIME = 50_000

Octets = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int64]


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
    """Rows of whole buckets: bucket b is the rows from edges[b] to edges[b + 1].

    Of the first bucket, the first `compared` rows are repeated: they came with an earlier part of it, and have been
    compared with each other.
    """

    rows: pa.Table
    edges: Indices
    compared: int


def cut_buckets(batches: Batches, keys: Sequence[str], limit: int) -> Iterator[Cut]:
    """Batches sorted by the columns `keys` -> their buckets, of rows that are equal in these.

    A bucket that is too large for memory comes in parts, each of which begins with the bucket's first `limit` rows: so
    every row is compared with these, which are all that a row of a large bucket has to be compared with.
    """
    held, compared = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) < ROWS_AT_A_TIME:
            continue
        rows = pa.Table.from_batches(held)
        edges = find_edges(*(rows[key].to_numpy() for key in keys))
        last = int(edges[-2])
        if last:
            yield Cut(rows.slice(0, last), edges[:-1], compared)
            rows, compared = rows.slice(last), 0
        if rows.num_rows > max(2 * limit, ROWS_AT_A_TIME):
            yield Cut(rows, np.array([0, rows.num_rows]), compared)
            rows, compared = rows.slice(0, limit), limit
        held = rows.combine_chunks().to_batches()
    if held:
        rows = pa.Table.from_batches(held)
        yield Cut(rows, find_edges(*(rows[key].to_numpy() for key in keys)), compared)
