"""The columns of a Parquet file of fingerprints, and the version that each row names."""

from typing import TYPE_CHECKING

from neardup.core.fingerprint.version import algorithm, digest_of
from neardup.languages import Languages

if TYPE_CHECKING:
    from pyarrow import Schema  # type: ignore[import-untyped]

TIMES = ("published_at", "updated_at", "known_since")
TEXTS = ("author_id", "path", "title", "page_title", "name")


def schema() -> "Schema":
    """The columns with their types, in the order in which they are written.

    `passages` has 4 bytes a hash, little-endian, ascending.
    """
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second

    types = {
        "id": pa.int64(),
        "language": pa.string(),
        "text_hash": pa.binary(16),
        "simhash": pa.binary(16),
        "signature": pa.binary(64),
        "passages": pa.binary(),
        "words": pa.int64(),
        "shingles": pa.int64(),
        "published_at": pa.timestamp("ms", tz="UTC"),
        "etag": pa.string(),
        "version": pa.string(),
        "updated_at": pa.timestamp("ms", tz="UTC"),
        **dict.fromkeys(TEXTS, pa.string()),
        "known_since": pa.timestamp("ms", tz="UTC"),
    }
    return pa.schema(list(types.items()))


def versions(languages: Languages) -> dict[str, str]:
    """Language -> the version of its fingerprints, as rows name it: that of the algorithm, and the language's."""
    return {name: f"{algorithm()} {digest_of(entry.golden)}" for name, entry in languages.items()}
