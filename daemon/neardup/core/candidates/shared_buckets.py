"""Who stands in several of the buckets that a story asks for: the inner loop of every lookup.

Nearly all numbers stand in one bucket only.  So two bitmaps that fit a processor's cache tell, by a hash
of the number, who was perhaps met before (Bloom, CACM 1970), and only these are counted.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.jit import compiled

Places = npt.NDArray[np.int64]

ONE = np.uint64(1)
WORD, IN_WORD = np.uint32(6), np.uint32(63)  # a bit's place in words of 64
MULTIPLIER = np.uint32(2654435769)  # 2^32 / golden ratio (Knuth, volume 3, section 6.4)
BITS_A_NUMBER = 8
LEAST_BITS = 12


@compiled
def shared_by(members: Numbers, edges: Places, asked: Places, least: int) -> tuple[Numbers, Places]:
    """The numbers that stand in at least `least` of the buckets that each of n stories asks for.

    Bucket b is members[edges[b]:edges[b + 1]]; `asked` (n, k) are the buckets of each story.  The numbers
    of story s are found[ends[s]:ends[s + 1]], ascending, for the returned `found` and `ends` (n + 1,).
    """
    found, ends = np.empty(1024, np.uint32), np.zeros(len(asked) + 1, np.int64)
    suspects = np.empty(1024, np.uint32)
    for story in range(len(asked)):
        total = 0
        for bucket in asked[story]:
            total += edges[bucket + 1] - edges[bucket]
        if len(suspects) < total:
            suspects = np.empty(2 * total, np.uint32)
        begin = ends[story]
        if len(found) < begin + total:
            grown = np.empty(2 * (begin + total), np.uint32)
            grown[:begin] = found[:begin]
            found = grown
        count = _suspects(members, edges, asked[story], least, suspects[:total])
        end = begin + _counted(suspects[:count], least, found[begin:])
        found[begin:end].sort()
        ends[story + 1] = end
    return found[: ends[-1]].copy(), ends


@compiled
def _suspects(members: Numbers, edges: Places, buckets: Places, least: int, suspects: Numbers) -> int:
    """Gather each occurrence of all numbers that stand in two buckets or more, and of some that don't; how many.

    `suspects` has room for all members of the buckets.
    """
    width = LEAST_BITS
    while 1 << width < BITS_A_NUMBER * len(suspects):
        width += 1
    shift = np.uint32(32 - width)
    once, again = np.zeros(1 << width - 6, np.uint64), np.zeros(1 << width - 6, np.uint64)
    for bucket in buckets:
        for number in members[edges[bucket] : edges[bucket + 1]]:
            place = np.uint32(number * MULTIPLIER) >> shift
            word, bit = np.uint64(place >> WORD), ONE << np.uint64(place & IN_WORD)
            again[word] |= once[word] & bit
            once[word] |= bit
    met = once if least == 1 else again
    count = np.uint64(0)
    for bucket in buckets:
        for number in members[edges[bucket] : edges[bucket + 1]]:
            place = np.uint32(number * MULTIPLIER) >> shift
            suspects[count] = number  # written always and kept perhaps: a branch would be guessed wrong
            count += met[np.uint64(place >> WORD)] >> np.uint64(place & IN_WORD) & ONE
    return int(count)


@compiled
def _counted(suspects: Numbers, least: int, found: Numbers) -> int:
    """Put the numbers that occur `least` times into `found`, in any order; how many."""
    width = 4
    while 1 << width < 2 * len(suspects):
        width += 1
    shift, mask = np.uint32(32 - width), np.uint64((1 << width) - 1)
    numbers, counts = np.zeros(1 << width, np.uint32), np.zeros(1 << width, np.uint32)
    end = 0
    for number in suspects:
        slot = np.uint64(np.uint32(number * MULTIPLIER) >> shift)
        while counts[slot] and numbers[slot] != number:
            slot = slot + ONE & mask
        numbers[slot] = number
        counts[slot] += np.uint32(1)
        if counts[slot] == least:
            found[end] = number
            end += 1
    return end
