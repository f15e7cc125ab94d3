"""Projects the bytes of an index in Redis 7, by layout and tier, as `used_memory` counts them.

A key takes an entry in the table of keys, its name and its value, each rounded up to a size class of jemalloc.  The
classes are those of Debian's build: every 16 bytes up to 128, then four per doubling.  Redis's own build also has 24,
40 and 56, and takes a little less.  Structures and headers are those of Redis 7.0: dict.h, sds.h, object.c (a value of
at most 44 bytes is allocated together with its object), intset.c, t_hash.c.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from statistics import fmean

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.index.size import IndexSize, LanguageShape, SizeProjection, TierSize
from neardup.index.spread import Spread, even_spread, signature_spread, simhash_spread

Sizes = npt.NDArray[np.int64]
Room = Callable[[Sizes], Sizes]

ENTRY = 32  # pointers to key, value and next entry, in the size class of 32
OBJECT = 16
SLOT = 8
FEWEST_SLOTS = 4
INTSET_HEADER = 8
EMBEDDED, EMBEDDED_HEADER = 44, OBJECT + 4
HASH_DIGITS = 32
VALUE_DIGITS = len(":FFFF")
EMPTY = 1_000_000  # bytes of an empty Redis
MOST_MEMBERS = 1 << 24
MAX_PREALLOCATION = 1 << 20  # a shorter string doubles when it grows

CODE_LENGTH = 2  # of nearly every language


def size_class(sizes: npt.ArrayLike) -> Sizes:
    """The bytes that jemalloc allocates for each requested size."""
    requested = np.asarray(sizes, np.int64)
    spacing = np.left_shift(1, np.maximum(np.frexp(np.maximum(requested - 1, 1).astype(float))[1] - 3, 4))
    return np.where(requested <= 8, 8, -(-requested // spacing) * spacing)


def sds(lengths: npt.ArrayLike) -> Sizes:
    """The bytes of a string of each length, allocated separately and without spare room."""
    length = np.asarray(lengths, np.int64)
    header = np.select([length < 32, length < 256, length < 65536], [1, 3, 5], 9)
    return size_class(header + length + 1)


def slots(keys: float) -> int:
    """The bytes of a table with so many keys; its slots are a power of two."""
    return SLOT * max(FEWEST_SLOTS, 1 << max(0, int(np.ceil(keys)) - 1).bit_length()) if keys else 0


def packed(members: Sizes) -> Sizes:
    """The bytes of packed buckets that were written whole."""
    length = NUMBER_BYTES * members
    whole = np.where(length <= EMBEDDED, size_class(EMBEDDED_HEADER + length), OBJECT + sds(length))
    return np.where(members > 0, whole, 0)


def trimmed(members: Sizes) -> Sizes:
    """The bytes of packed buckets that were appended to and then copied to their exact size."""
    return np.where(members > 0, OBJECT + sds(NUMBER_BYTES * members), 0)


def appended(members: Sizes) -> Sizes:
    """The bytes of packed buckets that grew number by number: each time one is full, its allocation is doubled."""
    fullest, sizes = _growth()
    return np.where(members > 0, sizes[np.searchsorted(fullest, members)], 0)


@cache
def _growth() -> tuple[Sizes, Sizes]:
    """The members that a bucket holds at most before it grows again, and its bytes up to that point."""
    fullest, sizes = [1], [int(size_class(EMBEDDED_HEADER + NUMBER_BYTES))]
    while fullest[-1] < MOST_MEMBERS:
        length = NUMBER_BYTES * (fullest[-1] + 1)
        wanted = length + min(length, MAX_PREALLOCATION)
        header = 3 if wanted < 256 else 5 if wanted < 65536 else 9
        size = int(size_class(wanted + header + 1))
        fullest.append((size - header - 1) // NUMBER_BYTES)
        sizes.append(OBJECT + size)
    return np.array(fullest), np.array(sizes)


def documented_tiers(shape: LanguageShape, *, grown: bool) -> dict[str, TierSize]:
    """The tiers of a language in the documented layout."""
    simhashes = simhash_spread(shape.simhash_skew)
    keys = simhashes.filled(shape.stories)
    intset = partial(_intset, width=_id_width(shape.highest_id))
    bands = keys * _key(len(shape.language) + len(":0") + VALUE_DIGITS) + simhashes.expected(shape.stories, intset)
    id_digits = len(str(shape.highest_id))
    hashes = shape.stories * (ENTRY + int(sds(id_digits)) + int(sds(HASH_DIGITS))) + slots(shape.stories)
    near = TierSize(bands + hashes + OBJECT + _key(len(f"simhashes:{shape.language}")), keys + 1)
    signatures = signature_spread(shape.signature_skew, shape.banding.bands, BAND_BITS)
    room = appended if grown else packed
    similar = _signatures(f"sketch:{shape.language}:", shape.stories * shape.signed, signatures, room)
    return {"near": near, "similar": similar}


def compact_tiers(shape: LanguageShape, *, grown: bool) -> dict[str, TierSize]:
    """The tiers of a language in the compact layout."""
    room = trimmed if grown else packed
    blocks = even_spread(shape.banding.hamming + SHARED_BLOCKS, shape.value_bits)
    near = _tier(blocks, shape.stories, _key(len("hi:n0") + VALUE_DIGITS), room)
    signatures = signature_spread(shape.signature_skew, shape.banding.bands, shape.value_bits)
    similar = _signatures(f"{'x' * CODE_LENGTH}:", shape.stories * shape.signed, signatures, room)
    return {"near": near, "similar": similar}


def project_documented(shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize:
    """The size of an index in the documented layout."""
    tiers = {shape.language: documented_tiers(shape, grown=grown) for shape in shapes}
    return IndexSize(tiers, total(tiers.values()))


def project_compact(shapes: Sequence[LanguageShape], *, grown: bool) -> IndexSize:
    """The size of an index in the compact layout."""
    tiers = {shape.language: compact_tiers(shape, grown=grown) for shape in shapes}
    return IndexSize(tiers, total(tiers.values()))


PROJECTIONS: Mapping[str, SizeProjection] = {"documented": project_documented, "compact": project_compact}


def total(languages: Iterable[Mapping[str, TierSize]]) -> float:
    """The bytes of all tiers of all languages, with the table of keys and an empty Redis."""
    tiers = [tier for each in languages for tier in each.values()]
    return EMPTY + sum(tier.bytes for tier in tiers) + slots(sum(tier.keys for tier in tiers))


def _signatures(prefix: str, stories: float, spread: Spread, room: Room) -> TierSize:
    bands = range(len(spread.collisions))
    return _tier(spread, stories, fmean(_key(len(f"{prefix}{band}") + VALUE_DIGITS) for band in bands), room)


def _tier(spread: Spread, stories: float, key: float, room: Room) -> TierSize:
    keys = spread.filled(stories)
    return TierSize(keys * key + spread.expected(stories, room), keys)


def _key(length: int) -> int:
    return ENTRY + int(sds(length))


def _intset(members: Sizes, width: int) -> Sizes:
    return np.where(members > 0, OBJECT + size_class(INTSET_HEADER + width * members), 0)


def _id_width(highest_id: int) -> int:
    """The bytes of each member of an intset of ids."""
    return 2 if highest_id < 1 << 15 else 4 if highest_id < 1 << 31 else 8
