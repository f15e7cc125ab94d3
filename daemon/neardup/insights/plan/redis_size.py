"""The bytes that an index takes in Redis 7, by layout and tier, as `used_memory` counts them.

Each key costs an entry of the table of keys, its name and its value, each in the size class that jemalloc
has for it (as packaged by Debian: classes of 16 bytes up to 128, then four to a doubling; Redis's own build
has 24, 40 and 56 between, and takes a little less).  Structures and headers: Redis 7.0, dict.h, sds.h,
object.c (values of 44 bytes and less lie in one piece with their object), intset.c, t_hash.c.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.insights.plan.profile import Profile
from neardup.insights.plan.spread import Spread, even_spread, signature_spread, simhash_spread
from neardup.records import Language

Sizes = npt.NDArray[np.int64]
Room = Callable[[Sizes], Sizes]

ENTRY = 32  # key, value and next, in the class of 32
OBJECT = 16
SLOT = 8
FEWEST_SLOTS = 4
INTSET_HEADER = 8
EMBEDDED, EMBEDDED_HEADER = 44, OBJECT + 4
HASH_DIGITS = 32
VALUE_DIGITS = len(":FFFF")
EMPTY = 1_000_000  # a Redis that holds nothing
MOST_MEMBERS = 1 << 24
GREEDY = 1 << 20  # a longer string grows by so much, not by as much again

CODE_DIGITS = 2  # of almost every language


@dataclass(frozen=True, slots=True)
class Tier:
    """What a tier of a language takes, without the table of keys, and how many keys it has."""

    bytes: float
    keys: float


def size_class(sizes: npt.ArrayLike) -> Sizes:
    """What jemalloc gives where so many bytes are asked for."""
    asked = np.asarray(sizes, np.int64)
    spacing = np.left_shift(1, np.maximum(np.frexp(np.maximum(asked - 1, 1).astype(float))[1] - 3, 4))
    return np.where(asked <= 8, 8, -(-asked // spacing) * spacing)


def sds(lengths: npt.ArrayLike) -> Sizes:
    """A string of so many bytes, by itself and of its own size."""
    length = np.asarray(lengths, np.int64)
    header = np.select([length < 32, length < 256, length < 65536], [1, 3, 5], 9)
    return size_class(header + length + 1)


def slots(keys: float) -> int:
    """The table of so many keys: a power of two."""
    return SLOT * max(FEWEST_SLOTS, 1 << max(0, int(np.ceil(keys)) - 1).bit_length()) if keys else 0


def packed(members: Sizes) -> Sizes:
    """A bucket of packed numbers that was written whole."""
    length = NUMBER_BYTES * members
    whole = np.where(length <= EMBEDDED, size_class(EMBEDDED_HEADER + length), OBJECT + sds(length))
    return np.where(members > 0, whole, 0)


def trimmed(members: Sizes) -> Sizes:
    """One that was appended to, and copied to its own size."""
    return np.where(members > 0, OBJECT + sds(NUMBER_BYTES * members), 0)


def appended(members: Sizes) -> Sizes:
    """One that was appended to, number by number: it was given twice the room each time it had none."""
    fullest, sizes = _growth()
    return np.where(members > 0, sizes[np.searchsorted(fullest, members)], 0)


@cache
def _growth() -> tuple[Sizes, Sizes]:
    """The members that a bucket holds before it grows again, and the bytes that it has up to there."""
    fullest, sizes = [1], [int(size_class(EMBEDDED_HEADER + NUMBER_BYTES))]
    while fullest[-1] < MOST_MEMBERS:
        length = NUMBER_BYTES * (fullest[-1] + 1)
        wanted = length + min(length, GREEDY)
        header = 3 if wanted < 256 else 5 if wanted < 65536 else 9
        size = int(size_class(wanted + header + 1))
        fullest.append((size - header - 1) // NUMBER_BYTES)
        sizes.append(OBJECT + size)
    return np.array(fullest), np.array(sizes)


def documented(
    language: Language, stories: float, profile: Profile, banding: Banding, bits: int, *, grown: bool
) -> Mapping[str, Tier]:
    """The documented layout of a language: buckets as they are when `grown` story by story, or rebuilt."""
    members = simhash_spread(profile.hash_skew)
    intset = partial(_intset, width=profile.id_width)
    keys = members.filled(stories)
    bands = keys * _key(len(language) + len(":0") + VALUE_DIGITS) + members.expected(stories, intset)
    hashes = stories * (ENTRY + int(sds(profile.id_digits)) + int(sds(HASH_DIGITS))) + slots(stories)
    near = Tier(bands + hashes + OBJECT + _key(len(f"simhashes:{language}")), keys + 1)
    sketched = signature_spread(profile.sketch_skew, banding.bands, BAND_BITS)
    room = appended if grown else packed
    similar = _signatures(f"sketch:{language}:", stories * profile.signed, sketched, room)
    return {"near": near, "similar": similar}


def compact(
    language: Language, stories: float, profile: Profile, banding: Banding, bits: int, *, grown: bool
) -> Mapping[str, Tier]:
    """The compact layout of a language, whose values have so many bits."""
    room = trimmed if grown else packed
    blocks = even_spread(banding.hamming + SHARED_BLOCKS, bits)
    near = _tier(blocks, stories, _key(len("hi:n0") + VALUE_DIGITS), room)
    sketched = signature_spread(profile.sketch_skew, banding.bands, bits)
    return {"near": near, "similar": _signatures(f"{'x' * CODE_DIGITS}:", stories * profile.signed, sketched, room)}


LAYOUTS = {"documented": documented, "compact": compact}


def total(tiers: list[Tier]) -> float:
    """All tiers of all languages, with the table of their keys."""
    return EMPTY + sum(tier.bytes for tier in tiers) + slots(sum(tier.keys for tier in tiers))


def _signatures(prefix: str, stories: float, spread: Spread, room: Room) -> Tier:
    bands = range(len(spread.collisions))
    return _tier(spread, stories, fmean(_key(len(f"{prefix}{band}") + VALUE_DIGITS) for band in bands), room)


def _tier(spread: Spread, stories: float, key: float, room: Room) -> Tier:
    keys = spread.filled(stories)
    return Tier(keys * key + spread.expected(stories, room), keys)


def _key(length: int) -> int:
    return ENTRY + int(sds(length))


def _intset(members: Sizes, width: int) -> Sizes:
    return np.where(members > 0, OBJECT + size_class(INTSET_HEADER + width * members), 0)
