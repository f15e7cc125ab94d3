"""The fingerprint of a story as one compiled function, from its code points to its hashes.

It gives what `fingerprint(tokens(text))` gives, bit for bit, where it gives anything: texts whose
normal form is more than a look-up, words too long or too frequent for it are left to that plain reading.
Measured on a core that does 512 bits at a time, microseconds of CPU for 1,160 words of Hindi and for
820 of Malayalam: 554 and 702 read plainly (618 and 1,694 before NFC was asked about doubtful texts
only), 86 and 71 here.

The constants are arguments, so that machine code kept on disk cannot hold old ones.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import word_hashes
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.fingerprint.xxh3 import LONGEST, U64, Bytes, byte_swapped, xxh3_128
from neardup.core.jit import compiled
from neardup.core.text.codepoints import CODE, DOUBTFUL, DROPPED, FIRST, SECOND, SEPARATOR, VIRAMA, ZWJ, Codes

Numbers = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]  # of a hash table: places in an array, from 1; 0 is free

UNSETTLED = -1  # the number of words of a text that is left to the plain reading
HALF = 64  # the bits of one half of a digest
LARGEST = U64(2**64 - 1)

mixed = compiled(word_hashes.mixed)


@compiled
def read_story(
    codes: Codes, entries: Codes, joining: Codes, weights: Numbers, permutations: tuple[Hashes, Hashes]
) -> tuple[int, int, Bytes, Bytes, Bytes]:
    """Code points -> words, distinct shingles, the normalised text, SimHash (16 bytes), signature (one a multiplier).

    `weights` are those of words told 0, 1, 2, ... times.  Where there are no words, or UNSETTLED,
    nothing else counts.
    """
    text, ends = np.empty(4 * len(codes) + 1, np.uint8), np.empty(len(codes) // 2 + 1, np.uint64)
    told = normalise(codes, entries, joining, text, ends)
    if told <= 0:
        return told, 0, text, text, text
    low, high, hashes = np.empty(told, np.uint64), np.empty(told, np.uint64), np.empty(told, np.uint64)
    times = np.zeros(told, np.int64)
    distinct = _count(text, ends[:told], (low, high), times, hashes)
    if distinct == UNSETTLED or times[:distinct].max() >= len(weights):
        return UNSETTLED, 0, text, text, text
    simhash = _vote(low[:distinct], high[:distinct], weights[times[:distinct]])
    pairs = _paired(hashes)
    return told, _distinct(pairs), text[: ends[told - 1]], simhash, _minima(pairs, *permutations)


@compiled
def normalise(codes: Codes, entries: Codes, joining: Codes, text: Bytes, ends: npt.NDArray[np.uint64]) -> int:
    """Write the words in UTF-8, a space between two, and where each ends; how many, or UNSETTLED.

    The arguments are a text's code points, the tables of `letters`, and room for 4 bytes a code point
    and for a word in every two of them and one.
    """
    told, size, before = 0, U64(0), entries[SEPARATOR]
    for place in range(len(codes)):
        entry = entries[min(codes[place], len(entries) - 1)]
        code = entry & CODE
        if entry & DOUBTFUL:
            return UNSETTLED
        if entry & SECOND and before & FIRST:
            first = before & CODE
            one = _joined(joining, first, code)
            if one:
                size -= U64(3) if first < 0x10000 else U64(4)
                code, entry = one, entries[one]
        if code > SEPARATOR:
            size = _put(text, size, code)
            before = entry
        elif code == SEPARATOR:
            before = entry
            if size and text[size - U64(1)] != SEPARATOR:
                ends[told] = size
                told += 1
                size = _put(text, size, code)
        else:
            one = _chillu(joining, codes, place)
            if one:
                size = _put(text, size - U64(6), one)
                before = entries[one]
    if size and text[size - U64(1)] != SEPARATOR:
        ends[told] = size
        told += 1
    return told


@compiled
def _chillu(joining: Codes, codes: Codes, place: int) -> np.uint32:
    """What letter, virama and ZWJ are that end at this place, or DROPPED."""
    if codes[place] == ZWJ and place >= 2 and codes[place - 1] == VIRAMA:
        return _joined(joining, codes[place - 2], ZWJ)
    return np.uint32(DROPPED)


@compiled
def _joined(joining: Codes, first: int, second: int) -> np.uint32:
    for row in range(len(joining)):
        if joining[row, 0] == first and joining[row, 1] == second:
            return np.uint32(joining[row, 2])
    return np.uint32(DROPPED)


@compiled
def _put(text: Bytes, size: np.uint64, code: np.uint32) -> np.uint64:
    """Write a code point in UTF-8 behind `size` bytes; how many there are then."""
    if code < 0x80:
        text[size] = code
        return size + U64(1)
    if code < 0x800:
        text[size] = 0xC0 | code >> 6
        text[size + U64(1)] = 0x80 | code & 0x3F
        return size + U64(2)
    if code < 0x10000:
        text[size] = 0xE0 | code >> 12
        text[size + U64(1)] = 0x80 | code >> 6 & 0x3F
        text[size + U64(2)] = 0x80 | code & 0x3F
        return size + U64(3)
    text[size] = 0xF0 | code >> 18
    text[size + U64(1)] = 0x80 | code >> 12 & 0x3F
    text[size + U64(2)] = 0x80 | code >> 6 & 0x3F
    text[size + U64(3)] = 0x80 | code & 0x3F
    return size + U64(4)


@compiled
def _count(
    text: Bytes, ends: npt.NDArray[np.uint64], digests: tuple[Hashes, Hashes], times: Numbers, hashes: Hashes
) -> int:
    """Hash each word, and count the distinct ones by their digests; how many, or UNSETTLED.

    Writes the digests' halves and how often each was told, and for each word of the text what
    `Words.hashes` holds of it.
    """
    low, high = digests
    slots = _free_slots(len(ends))
    mask = U64(len(slots) - 1)
    distinct, start = 0, U64(0)
    for word in range(len(ends)):
        size = ends[word] - start
        if size > LONGEST:
            return UNSETTLED
        lower, upper = xxh3_128(text, start, size)
        start = ends[word] + U64(1)
        hashes[word] = byte_swapped(upper)
        at = lower & mask
        while slots[at] and (low[slots[at] - 1] != lower or high[slots[at] - 1] != upper):
            at = at + U64(1) & mask
        if not slots[at]:
            low[distinct], high[distinct] = lower, upper
            distinct += 1
            slots[at] = distinct
        times[slots[at] - 1] += 1
    return distinct


@compiled
def _vote(low: Hashes, high: Hashes, weights: Numbers) -> Bytes:
    """(16,) uint8: each bit is set where the words with that bit outweigh those without."""
    out, all_votes = np.zeros(2 * HALF // 8, np.uint8), weights.sum()
    for bit in range(HALF):
        for_high, for_low, shift = 0, 0, U64(HALF - 1 - bit)
        for word in range(len(weights)):
            for_high += weights[word] & -np.int64(high[word] >> shift & U64(1))
            for_low += weights[word] & -np.int64(low[word] >> shift & U64(1))
        if 2 * for_high > all_votes:
            out[bit // 8] |= 0x80 >> bit % 8
        if 2 * for_low > all_votes:
            out[(HALF + bit) // 8] |= 0x80 >> bit % 8
    return out


@compiled
def _paired(hashes: Hashes) -> Hashes:
    """The hashes of the shingles, in the order of the text; see `minhash.shingles`."""
    if len(hashes) == 1:
        return mixed(hashes)
    return mixed(mixed(hashes[:-1]) + hashes[1:])


@compiled
def _distinct(pairs: Hashes) -> int:
    seen = _free_slots(len(pairs))
    mask = U64(len(seen) - 1)
    distinct = 0
    for place in range(len(pairs)):
        at = pairs[place] & mask
        while seen[at] and pairs[seen[at] - 1] != pairs[place]:
            at = at + U64(1) & mask
        if not seen[at]:
            seen[at] = place + 1
            distinct += 1
    return distinct


@compiled
def _free_slots(entries: int) -> Slots:
    """At least twice as many, a power of two."""
    slots = 16
    while slots < 2 * entries:
        slots *= 2
    return np.zeros(slots, np.int32)


@compiled
def _minima(pairs: Hashes, multipliers: Hashes, addends: Hashes) -> Bytes:
    """See `minhash.signature`; a shingle told twice changes no minimum."""
    out = np.empty(len(multipliers), np.uint8)
    for row in range(len(multipliers)):
        least = LARGEST
        for pair in range(len(pairs)):
            least = min(least, pairs[pair] * multipliers[row] + addends[row])
        out[row] = mixed(least) >> U64(56)
    return out
