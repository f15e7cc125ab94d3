"""Postings in memory, sorted as keys, and the two directions between keys and the bytes of a segment.

A key is the hash of a posting in the upper half of 64 bits and the number in the lower half.  The hashes with the same
top PREFIX_BITS bits share a *prefix*; buckets of any segment are parts of one prefix.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.jit import compiled
from neardup.index.passages.checksums import Bytes

PREFIX_BITS = 16
PREFIXES = 1 << PREFIX_BITS
PREFIX_SHIFT = np.uint64(64 - PREFIX_BITS)
HASH_SHIFT = np.uint64(32)
NUMBER_MASK = np.uint64((1 << 32) - 1)

Keys = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.uint32]
PassageHashes = npt.NDArray[np.uint32]
NO_KEYS: Keys = np.empty(0, np.uint64)
Row = tuple[int, PassageHashes]  # a story's number and its distinct hashes


class Coding(NamedTuple):
    """How a segment writes its postings (see neardup.index.passages.layout)."""

    bucket_bits: int
    low_bytes: int
    number_bytes: int
    first: int


def keys_of(rows: Sequence[Row]) -> Keys:
    """The sorted keys of some stories' postings."""
    if not rows:
        return np.empty(0, np.uint64)
    hashes = np.concatenate([hashes for _, hashes in rows]).astype(np.uint64)
    numbers = np.repeat(np.array([number for number, _ in rows], np.uint64), [len(hashes) for _, hashes in rows])
    return np.sort(hashes << HASH_SHIFT | numbers)


def merged(runs: Sequence[Keys]) -> Keys:
    """Several sorted arrays of keys as one.  numpy's stable sort is a timsort, which merges runs."""
    return np.sort(np.concatenate([np.empty(0, np.uint64), *runs]), kind="stable")


def numbers_of(keys: Keys) -> Numbers:
    """The number of each key."""
    return (keys & NUMBER_MASK).astype(np.uint32)


def hashes_of(keys: Keys) -> PassageHashes:
    """The hash of each key."""
    return (keys >> HASH_SHIFT).astype(np.uint32)


@compiled
def encode(keys: Keys, coding: Coding, first_bucket: int, offsets: Offsets, content: Bytes) -> None:
    """Write the sorted keys of the buckets from `first_bucket` on to `content`.

    `offsets` (buckets,) receives how many of the keys precede each bucket.
    """
    low_bits, place, start = 32 - coding.bucket_bits, 0, 0
    for n_bucket in range(len(offsets)):
        stop = start
        while stop < len(keys) and keys[stop] >> np.uint64(32 + low_bits) == np.uint64(first_bucket + n_bucket):
            stop += 1
        offsets[n_bucket] = start
        for n in range(start, stop):
            _put(content, place, int(np.int64(keys[n] >> np.uint64(32))), coding.low_bytes)
            place += coding.low_bytes
        for n in range(start, stop):
            _put(content, place, int(np.int64(keys[n] & NUMBER_MASK)) - coding.first, coding.number_bytes)
            place += coding.number_bytes
        start = stop


@compiled
def decode(content: Bytes, coding: Coding, first_bucket: int, offsets: Offsets) -> Keys:
    """The sorted keys of the buckets from `first_bucket` on; `offsets` (buckets + 1,) are theirs and the next one's."""
    keys = np.empty(np.int64(offsets[-1]) - np.int64(offsets[0]), np.uint64)
    low_bits, place, n = 32 - coding.bucket_bits, 0, 0
    for n_bucket in range(len(offsets) - 1):
        size = int(np.int64(offsets[n_bucket + 1])) - int(np.int64(offsets[n_bucket]))
        numbers = place + size * coding.low_bytes
        for _ in range(size):
            low = get(content, place, coding.low_bytes)
            number = coding.first + get(content, numbers, coding.number_bytes)
            keys[n] = np.uint64(first_bucket + n_bucket << low_bits | low) << HASH_SHIFT | np.uint64(number)
            place, numbers, n = place + coding.low_bytes, numbers + coding.number_bytes, n + 1
        place = numbers
    return keys


@compiled
def get(content: Bytes, place: int, size: int) -> int:
    """The little-endian integer of `size` bytes at a place."""
    value = 0
    for n in range(size):
        value |= int(np.int64(content[place + n])) << (8 * n)
    return value


@compiled
def _put(content: Bytes, place: int, value: int, size: int) -> None:
    for n in range(size):
        content[place + n] = value >> (8 * n) & 0xFF
