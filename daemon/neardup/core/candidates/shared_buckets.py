"""Story numbers that occur in several of the buckets of a lookup: the inner loop of every lookup.

Nearly all numbers occur in one bucket only.  So two bitmaps that fit a processor's cache first mark the numbers that
may occur twice, by a hash of the number (a Bloom filter with one hash function: Bloom, CACM 1970), and only the
occurrences of these are counted.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.jit import compiled

Indices = npt.NDArray[np.int64]

ONE = np.uint64(1)
WORD_SHIFT, BIT_MASK = np.uint32(6), np.uint32(63)  # a bit's word and its bit in words of 64
MULTIPLIER = np.uint32(2654435769)  # 2^32 / golden ratio (Knuth, volume 3, section 6.4)
BITS_PER_NUMBER = 8
MIN_WIDTH = 12


@compiled
def shared_by(members: Numbers, edges: Indices, lookups: Indices, least: int) -> tuple[Numbers, Indices]:
    """For each of n lookups, the numbers that occur in at least `least` of its buckets.

    Bucket b is members[edges[b]:edges[b + 1]]; `lookups` (n, k) are the buckets of each lookup.  The numbers found by
    lookup i are found[ends[i]:ends[i + 1]], ascending, for the returned `found` and `ends` (n + 1,).
    """
    found, ends = np.empty(1024, np.uint32), np.zeros(len(lookups) + 1, np.int64)
    gathered = np.empty(1024, np.uint32)
    for lookup in range(len(lookups)):
        total = 0
        for bucket in lookups[lookup]:
            total += edges[bucket + 1] - edges[bucket]
        if len(gathered) < total:
            gathered = np.empty(2 * total, np.uint32)
        begin = ends[lookup]
        if len(found) < begin + total:
            grown = np.empty(2 * (begin + total), np.uint32)
            grown[:begin] = found[:begin]
            found = grown
        count = _gather(members, edges, lookups[lookup], least, gathered[:total])
        end = begin + _count(gathered[:count], least, found[begin:])
        found[begin:end].sort()
        ends[lookup + 1] = end
    return found[: ends[-1]].copy(), ends


@compiled
def _gather(members: Numbers, edges: Indices, buckets: Indices, least: int, gathered: Numbers) -> int:
    """Fill `gathered` with the occurrences of numbers that may occur in two buckets; returns how many there are.

    No number that occurs twice is missing; a few others are there because their hashes collide.  If `least` is 1, all
    occurrences are gathered.  `gathered` has room for all members of the buckets.
    """
    width = MIN_WIDTH
    while 1 << width < BITS_PER_NUMBER * len(gathered):
        width += 1
    shift = np.uint32(32 - width)
    seen_once, seen_twice = np.zeros(1 << width - 6, np.uint64), np.zeros(1 << width - 6, np.uint64)
    for bucket in buckets:
        for number in members[edges[bucket] : edges[bucket + 1]]:
            slot = np.uint32(number * MULTIPLIER) >> shift
            word, bit = np.uint64(slot >> WORD_SHIFT), ONE << np.uint64(slot & BIT_MASK)
            seen_twice[word] |= seen_once[word] & bit
            seen_once[word] |= bit
    is_gathered = seen_once if least == 1 else seen_twice
    count = np.uint64(0)
    for bucket in buckets:
        for number in members[edges[bucket] : edges[bucket + 1]]:
            slot = np.uint32(number * MULTIPLIER) >> shift
            gathered[count] = number  # overwritten unless it is gathered: a branch would often be mispredicted
            count += is_gathered[np.uint64(slot >> WORD_SHIFT)] >> np.uint64(slot & BIT_MASK) & ONE
    return int(count)


@compiled
def _count(gathered: Numbers, least: int, found: Numbers) -> int:
    """Fill `found` with the numbers that occur at least `least` times, in any order; returns how many there are."""
    width = 4
    while 1 << width < 2 * len(gathered):
        width += 1
    shift, mask = np.uint32(32 - width), np.uint64((1 << width) - 1)
    numbers, counts = np.zeros(1 << width, np.uint32), np.zeros(1 << width, np.uint32)
    end = 0
    for number in gathered:
        slot = np.uint64(np.uint32(number * MULTIPLIER) >> shift)
        while counts[slot] and numbers[slot] != number:
            slot = slot + ONE & mask
        numbers[slot] = number
        counts[slot] += np.uint32(1)
        if counts[slot] == least:
            found[end] = number
            end += 1
    return end
