"""Lookups among the hashes in memory, in compiled code that runs without the GIL.

Most hashes of a new text are in none of the runs.  A filter tells nearly all of these with one access to memory.  It is
a Bloom filter (CACM 1970) with one hash function, which is the passage hash itself.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled
from neardup.index.passages.postings import HASH_SHIFT, Keys, PassageHashes
from neardup.index.passages.segment_lookup import Counts

UNUSED_BITS = 5  # of a hash, for its place in a filter
FILTER_BYTES = 1 << 32 - UNUSED_BITS - 3  # 16 MB, of which only the parts in use take memory

Filter = npt.NDArray[np.uint8]


def empty_filter() -> Filter:
    """A filter of no hashes."""
    return np.zeros(FILTER_BYTES, np.uint8)


@compiled
def put_in_filter(hashes: PassageHashes, filter_: Filter) -> None:
    """Let a filter hold these hashes, too."""
    for one in hashes:
        bit = one >> np.uint32(UNUSED_BITS)
        filter_[bit >> np.uint32(3)] |= np.uint8(1) << np.uint8(bit & np.uint32(7))


@compiled
def may_hold(filter_: Filter, hashes: PassageHashes) -> npt.NDArray[np.bool_]:
    """Whether a filter may hold each hash: surely those that were put in, and few of the others."""
    held = np.empty(len(hashes), np.bool_)
    for n in range(len(hashes)):
        bit = hashes[n] >> np.uint32(UNUSED_BITS)
        held[n] = filter_[bit >> np.uint32(3)] >> np.uint8(bit & np.uint32(7)) & np.uint8(1)
    return held


@compiled
def find_keys(keys: Keys, hashes: PassageHashes, places: Counts, counts: Counts) -> None:
    """For each hash: write the place of its first key, and how many keys have it.

    The search begins where the key would be if hashes were spread evenly, which they nearly are.
    """
    for n in range(len(hashes)):
        least = np.uint64(hashes[n]) << HASH_SHIFT
        expected = int(np.int64(hashes[n])) * len(keys) >> 32
        places[n] = first = _first_at_least(keys, least, expected)
        counts[n] = 0
        if first < len(keys) and keys[first] >> HASH_SHIFT == np.uint64(hashes[n]):
            next_hash = (np.uint64(hashes[n]) + np.uint64(1)) << HASH_SHIFT
            is_last = hashes[n] == np.uint32(2**32 - 1)
            counts[n] = (len(keys) if is_last else _first_at_least(keys, next_hash, first)) - first


@compiled
def _first_at_least(keys: Keys, key: np.uint64, start: int) -> int:
    """How many keys are less than `key`: an exponential search from a place on (Bentley and Yao, IPL 1976)."""
    low = high = start
    step = 1
    while high < len(keys) and keys[high] < key:
        low = high + 1
        high = min(high + step, len(keys))
        step *= 2
    while low > 0 and keys[low - 1] >= key:
        high = low - 1
        low = max(low - step, 0)
        step *= 2
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low
