"""Fingerprints as the pair stages carry them: a number of the language, and one value of 96 bytes.

These are the SimHash, the signature (zeros where there is none) and the hash of the text.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from neardup.config import Config
from neardup.core.candidates.key_pairs import KeyTable
from neardup.core.candidates.screen import Arrays
from neardup.core.fingerprint.minhash import ROWS
from neardup.spark.columns import octets_of

HASH_BYTES = 16
BYTES = HASH_BYTES + ROWS + HASH_BYTES
PAIRS = "a long, b long, language int, rows int, bits int, shared int, same_text boolean, left_out long"


class Prints(NamedTuple):
    """The fingerprints of n rows, in the form of the joins, and the hashes of their texts (n, 16)."""

    arrays: Arrays
    texts: npt.NDArray[np.uint8]


def table_of(config: Config) -> KeyTable:
    """The thresholds of the languages, in the order of the registry, which numbers them."""
    return KeyTable.of({language: config.detection.of(language) for language in config.registry})


def prints_of(fingerprints: DataFrame, config: Config) -> DataFrame:
    """Fingerprints -> id, language and print."""
    names = f.array(*(f.lit(str(name)) for name in config.registry))
    language = (f.array_position(names, f.col("language")) - 1).cast("int")
    signature = f.coalesce(f.col("signature"), f.unhex(f.lit("00" * ROWS)))
    return fingerprints.select(
        "id", language.alias("language"), f.concat(f.col("simhash"), signature, f.col("text_hash")).alias("print")
    )


def unpacked(rows: pa.Table | pa.RecordBatch) -> Prints:
    """Rows with the columns `language` and `print` -> their arrays."""
    octets = octets_of(rows["print"], BYTES)
    simhashes = np.ascontiguousarray(octets[:, :HASH_BYTES]).view(np.uint64)
    signatures = np.ascontiguousarray(octets[:, HASH_BYTES : HASH_BYTES + ROWS])
    languages = rows["language"].to_numpy().astype(np.uint8)
    arrays = languages, simhashes, signatures, np.asarray(signatures.any(axis=1))
    return Prints(arrays, octets[:, HASH_BYTES + ROWS :])


def same_texts(prints: Prints, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Of each pair of rows, whether both have the same text."""
    return np.asarray((prints.texts[left] == prints.texts[right]).all(axis=1))
