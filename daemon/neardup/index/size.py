"""Projects the bytes that an index takes before it exists, of each language and tier.

The sizes of all buckets follow from how unevenly stories are spread over the values of a band (neardup.index.spread);
each kind of index maps the members of a bucket to bytes.

**Redis 7**, as `used_memory` counts them.  A key takes an entry in the table of keys, its name and its value, each
rounded up to a size class of jemalloc.  The classes are those of Debian's build: every 16 bytes up to 128, then four
per doubling.  Redis's own build also has 24, 40 and 56, and takes a little less.  Structures and headers are those of
Redis 7.0: dict.h, sds.h, object.c (a value of at most 44 bytes is allocated together with its object), intset.c,
t_hash.c.

**SQLite**: a table in which each bucket is a row.  A row is a cell in a leaf page; a payload that is too long continues
in overflow pages (sqlite.org/fileformat2.html).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.index.spread import Spread, even_spread, signature_spread, simhash_spread
from neardup.records import Language
from neardup.sqlite import PAGE_BYTES, bytes_in_leaves

Sizes = npt.NDArray[np.int64]
BucketBytes = Callable[[Sizes], Sizes]  # the members of each bucket -> its bytes

# of Redis
ENTRY_BYTES = 32  # pointers to key, value and next entry, in the size class of 32
OBJECT_BYTES = 16
SLOT_BYTES = 8
FEWEST_SLOTS = 4
INTSET_HEADER = 8
EMBEDDED, EMBEDDED_HEADER = 44, OBJECT_BYTES + 4  # the longest string inside its object, and the bytes around it
HASH_DIGITS = 32  # of a SimHash
VALUE_DIGITS = len(":FFFF")
CODE_LENGTH = 2  # of the ISO 639 code of nearly every language
EMPTY_BYTES = 1_000_000  # bytes of an empty Redis
MOST_GROWN_MEMBERS = 1 << 24
MAX_PREALLOCATION = 1 << 20  # a string that grows gets as much spare room as it is long, but no more than this

# Bytes that a key takes less in Valkey 9.1, which has no entries in its table of keys and allocates a name with its
# value: measured by layout, and by whether the index grew, on 6,000 to 100,000 synthetic stories.
VALKEY_SAVES = {
    ("documented", True): 36,
    ("documented", False): 42,
    ("compact", True): 5,  # a trimmed string is no part of its key
    ("compact", False): 37,
}


# of SQLite
MOST_LOCAL, LEAST_LOCAL = (
    PAGE_BYTES - 35,
    (PAGE_BYTES - 12) * 32 // 255 - 23,
)  # bytes of a payload in its leaf: X and M there
OVERFLOW_LINK = 4  # the number of the next overflow page
CELL_HEADER, RECORD_HEADER = 5, 4


@dataclass(frozen=True, slots=True)
class LanguageShape:
    """What decides the bytes of a language in an index.

    Of `stories` stories the share `signed` has a signature; `highest_id` is the highest of their ids.  The skews say
    how often two unrelated stories share a band, in times of the uniform 2 ** -16 (see neardup.index.spread).
    `value_bits` is the width of the values of packed buckets.
    """

    language: Language
    stories: float
    signed: float
    highest_id: int
    signature_skew: float
    simhash_skew: float
    banding: Banding
    value_bits: int


@dataclass(frozen=True, slots=True)
class TierSize:
    """The bytes of the buckets of a language that nominate one kind of match, and their number of keys.

    The bytes do not include what all keys share, such as Redis's table of keys.
    """

    bytes: float
    keys: float


@dataclass(frozen=True, slots=True)
class IndexSize:
    """The projected size of an index: of each language by tier, `near` and `similar`, and the `total` in bytes."""

    tiers: Mapping[Language, Mapping[str, TierSize]]
    total: float


class SizeProjection(Protocol):
    """Projects the size of an index of these languages.

    `grown` is an index that grew story by story; without it, one that was rebuilt from the ledger.
    """

    def __call__(self, shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize: ...


def size_class(sizes: npt.ArrayLike) -> Sizes:
    """The bytes that jemalloc allocates for each requested size."""
    requested = np.asarray(sizes, np.int64)
    spacing = np.left_shift(1, np.maximum(np.frexp(np.maximum(requested - 1, 1).astype(float))[1] - 3, 4))
    return np.where(requested <= 8, 8, -(-requested // spacing) * spacing)


def string_bytes(lengths: npt.ArrayLike) -> Sizes:
    """The bytes of a string of each length, allocated separately and without spare room."""
    length = np.asarray(lengths, np.int64)
    header = np.select([length < 32, length < 256, length < 65536], [1, 3, 5], 9)
    return size_class(header + length + 1)


def hash_table_bytes(keys: float) -> int:
    """The bytes of the slots of a hash table with so many keys; their number is a power of two."""
    return SLOT_BYTES * max(FEWEST_SLOTS, 1 << max(0, int(np.ceil(keys)) - 1).bit_length()) if keys else 0


def packed_bytes(members: Sizes) -> Sizes:
    """The bytes of packed buckets that were written whole."""
    length = NUMBER_BYTES * members
    whole = np.where(length <= EMBEDDED, size_class(EMBEDDED_HEADER + length), OBJECT_BYTES + string_bytes(length))
    return np.where(members > 0, whole, 0)


def trimmed_bytes(members: Sizes) -> Sizes:
    """The bytes of packed buckets that were appended to and then copied to their exact size."""
    return np.where(members > 0, OBJECT_BYTES + string_bytes(NUMBER_BYTES * members), 0)


def appended_bytes(members: Sizes) -> Sizes:
    """The bytes of packed buckets that grew number by number: a full one gets spare room (see MAX_PREALLOCATION)."""
    capacities, sizes = _growth()
    return np.where(members > 0, sizes[np.searchsorted(capacities, members)], 0)


@cache
def _growth() -> tuple[Sizes, Sizes]:
    """For each allocation of a growing bucket, the most members that fit into it, and the bucket's bytes."""
    capacities, sizes = [1], [int(size_class(EMBEDDED_HEADER + NUMBER_BYTES))]
    while capacities[-1] < MOST_GROWN_MEMBERS:
        length = NUMBER_BYTES * (capacities[-1] + 1)
        requested = length + min(length, MAX_PREALLOCATION)
        header = 3 if requested < 256 else 5 if requested < 65536 else 9
        size = int(size_class(requested + header + 1))
        capacities.append((size - header - 1) // NUMBER_BYTES)
        sizes.append(OBJECT_BYTES + size)
    return np.array(capacities), np.array(sizes)


def documented_tiers(shape: LanguageShape, *, grown: bool) -> dict[str, TierSize]:
    """The tiers of a language in the documented layout."""
    simhashes = simhash_spread(shape.simhash_skew)
    keys = simhashes.filled(shape.stories)
    intset = partial(_intset, width=_id_width(shape.highest_id))
    band_bytes = keys * _key_bytes(len(shape.language) + len(":0") + VALUE_DIGITS)
    band_bytes += simhashes.expected(shape.stories, intset)
    id_digits = len(str(shape.highest_id))
    hash_bytes = shape.stories * (
        ENTRY_BYTES + int(string_bytes(id_digits)) + int(string_bytes(HASH_DIGITS))
    ) + hash_table_bytes(shape.stories)
    hash_key = _key_bytes(len(f"simhashes:{shape.language}"))
    near = TierSize(band_bytes + hash_bytes + OBJECT_BYTES + hash_key, keys + 1)
    signatures = signature_spread(shape.signature_skew, shape.banding.bands, BAND_BITS)
    bucket_bytes = appended_bytes if grown else packed_bytes
    similar = _signature_tier(f"sketch:{shape.language}:", shape.stories * shape.signed, signatures, bucket_bytes)
    return {"near": near, "similar": similar}


def compact_tiers(shape: LanguageShape, *, grown: bool) -> dict[str, TierSize]:
    """The tiers of a language in the compact layout."""
    bucket_bytes = trimmed_bytes if grown else packed_bytes
    blocks = even_spread(shape.banding.hamming + SHARED_BLOCKS, shape.value_bits)
    near = _redis_tier(blocks, shape.stories, _key_bytes(len("hi:n0") + VALUE_DIGITS), bucket_bytes)
    signatures = signature_spread(shape.signature_skew, shape.banding.bands, shape.value_bits)
    similar = _signature_tier(f"{'x' * CODE_LENGTH}:", shape.stories * shape.signed, signatures, bucket_bytes)
    return {"near": near, "similar": similar}


def _project_redis(
    tiers_of: Callable[..., dict[str, TierSize]], shapes: Sequence[LanguageShape], *, grown: bool
) -> IndexSize:
    """The size of an index whose layout has these tiers, with the table of keys and an empty Redis."""
    languages = {shape.language: tiers_of(shape, grown=grown) for shape in shapes}
    tiers = [tier for by_tier in languages.values() for tier in by_tier.values()]
    table = hash_table_bytes(sum(tier.keys for tier in tiers))
    return IndexSize(languages, EMPTY_BYTES + sum(tier.bytes for tier in tiers) + table)


def valkey_bytes(size: IndexSize, layout: str, *, grown: bool) -> float:
    """The bytes in Valkey of an index that takes `size` in Redis."""
    keys = sum(tier.keys for tiers in size.tiers.values() for tier in tiers.values())
    return size.total - VALKEY_SAVES[layout, grown] * keys


def _signature_tier(prefix: str, stories: float, spread: Spread, bucket_bytes: BucketBytes) -> TierSize:
    bands = range(len(spread.collisions))
    return _redis_tier(
        spread, stories, fmean(_key_bytes(len(f"{prefix}{band}") + VALUE_DIGITS) for band in bands), bucket_bytes
    )


def _redis_tier(spread: Spread, stories: float, key_bytes: float, bucket_bytes: BucketBytes) -> TierSize:
    keys = spread.filled(stories)
    return TierSize(keys * key_bytes + spread.expected(stories, bucket_bytes), keys)


def _key_bytes(length: int) -> int:
    """The bytes of a key of this length, with its entry in the table of keys."""
    return ENTRY_BYTES + int(string_bytes(length))


def _intset(members: Sizes, width: int) -> Sizes:
    """The bytes of sets of ids, each of `width` bytes."""
    return np.where(members > 0, OBJECT_BYTES + size_class(INTSET_HEADER + width * members), 0)


def _id_width(highest_id: int) -> int:
    """The bytes of each member of an intset of ids."""
    return 2 if highest_id < 1 << 15 else 4 if highest_id < 1 << 31 else 8


def project_sqlite(shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize:
    """The projected size of an index that was rebuilt.  `grown` is ignored: one that grew takes up to a third more."""
    tiers = {shape.language: _sqlite_tiers(shape) for shape in shapes}
    return IndexSize(tiers, sum(tier.bytes for by_tier in tiers.values() for tier in by_tier.values()))


def _sqlite_tiers(shape: LanguageShape) -> dict[str, TierSize]:
    blocks = even_spread(shape.banding.hamming + SHARED_BLOCKS, shape.value_bits)
    bands = signature_spread(shape.signature_skew, shape.banding.bands, shape.value_bits)
    return {"near": _sqlite_tier(blocks, shape.stories), "similar": _sqlite_tier(bands, shape.stories * shape.signed)}


def _sqlite_tier(spread: Spread, stories: float) -> TierSize:
    cell_bytes, filled = spread.expected(stories, _cell_bytes), spread.filled(stories)
    overflow = spread.expected(stories, _overflow_bytes)
    return TierSize(filled * bytes_in_leaves(cell_bytes / filled) + overflow if filled else 0.0, filled)


def _cell_bytes(members: Sizes) -> Sizes:
    """The bytes of each bucket's cell in its leaf, by the number of members."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    fitted = LEAST_LOCAL + (payload - LEAST_LOCAL) % (PAGE_BYTES - OVERFLOW_LINK)  # fills the overflow pages exactly
    local = np.where(fitted <= MOST_LOCAL, fitted, LEAST_LOCAL)
    return np.where(members > 0, np.where(payload <= MOST_LOCAL, payload, local + OVERFLOW_LINK) + CELL_HEADER, 0)


def _overflow_bytes(members: Sizes) -> Sizes:
    """The bytes of each bucket's overflow pages, by the number of members."""
    payload = NUMBER_BYTES * members + RECORD_HEADER
    overflowing = np.where(payload > MOST_LOCAL, payload - LEAST_LOCAL, 0)
    return -(-overflowing // (PAGE_BYTES - OVERFLOW_LINK)) * PAGE_BYTES


REDIS_PROJECTIONS: Mapping[str, SizeProjection] = {
    "documented": partial(_project_redis, documented_tiers),
    "compact": partial(_project_redis, compact_tiers),
}
# By layout for Redis; SQLite has one layout.
SIZE_PROJECTIONS: Mapping[str, SizeProjection] = {**REDIS_PROJECTIONS, "sqlite": project_sqlite}
