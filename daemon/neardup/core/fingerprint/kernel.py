"""The fingerprint of a story as one compiled function, from its code points to its hashes.

The results are identical to those of the plain implementation, `fingerprint(tokens(text))`, but the kernel does not
normalise every text.  It returns UNSUPPORTED for a text that `normalize_kernel` cannot normalise (with ß, two Arabic
vowel signs on one letter, or an accent written as a combining mark), and the caller gives it the normalised text.  It
also returns UNSUPPORTED for a word longer than LONGEST bytes, or one that occurs too often for `weights`; then the
caller uses the plain implementation.

A text of 1,000 words takes 60 to 200 microseconds; with a few code points BEYOND_TABLE about 4 times as long, and with
one in each word 25 to 40 times.  The constants are arguments, so that cached machine code has no outdated ones.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import word_hashes
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.fingerprint.winnowing_kernel import winnowed
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.fingerprint.xxh3 import LONGEST, U64, Bytes, byte_swapped, xxh3_128
from neardup.core.jit import compiled
from neardup.core.text.codepoints import Codes, Tables
from neardup.core.text.normalize_kernel import UNSUPPORTED, normalise

Numbers = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]  # a hash table of indices into an array, plus 1; 0 is a free slot

HALF = 64  # the bits of one half of a digest
MAX_HASH = U64(2**64 - 1)

mixed = compiled(word_hashes.mixed)


@compiled
def fingerprint_story(
    codes: Codes,
    tables: Tables,
    weights: Numbers,
    permutations: tuple[Hashes, Hashes],
    window: int,
) -> tuple[int, int, Bytes, Bytes, Bytes, PassageHashes]:
    """Code points -> words, distinct shingles, normalised text, SimHash (16 bytes), signature, passage hashes.

    `weights` (n,) are the weights of words by term frequency.
    The signature has one byte per permutation; `window` is that of the passage hashes.  If the first number is 0 or
    UNSUPPORTED, the rest is meaningless.
    """
    text, ends = np.empty(4 * len(codes) + 1, np.uint8), np.empty(len(codes) // 2 + 1, np.uint64)
    words = normalise(codes, tables, text, ends)
    if words <= 0:
        return words, 0, text, text, text, np.empty(0, np.uint32)
    low, high, hashes = np.empty(words, np.uint64), np.empty(words, np.uint64), np.empty(words, np.uint64)
    frequencies = np.zeros(words, np.int64)
    distinct = _count(text, ends[:words], (low, high), frequencies, hashes)
    if distinct == UNSUPPORTED or frequencies[:distinct].max() >= len(weights):
        return UNSUPPORTED, 0, text, text, text, np.empty(0, np.uint32)
    simhash = _vote(low[:distinct], high[:distinct], weights[frequencies[:distinct]])
    pairs = _paired(hashes)
    minima, passages = _minima(pairs, *permutations), winnowed(pairs, window)
    return words, _count_distinct(pairs), text[: ends[words - 1]], simhash, minima, passages


@compiled
def hash_words(codes: Codes, tables: Tables) -> tuple[int, Bytes, Hashes]:
    """Code points -> words, normalised text, the hash of each word as in `Words.hashes`.

    If the first number is 0 or UNSUPPORTED, the rest is meaningless.
    """
    text, ends = np.empty(4 * len(codes) + 1, np.uint8), np.empty(len(codes) // 2 + 1, np.uint64)
    words = normalise(codes, tables, text, ends)
    hashes, start = np.empty(max(words, 0), np.uint64), U64(0)
    for word in range(words):
        size = ends[word] - start
        if size > LONGEST:
            return UNSUPPORTED, text, hashes
        hashes[word] = byte_swapped(xxh3_128(text, start, size)[1])
        start = ends[word] + U64(1)
    return words, text[: ends[words - 1]] if words > 0 else text, hashes


@compiled
def _count(
    text: Bytes, ends: npt.NDArray[np.uint64], digests: tuple[Hashes, Hashes], frequencies: Numbers, hashes: Hashes
) -> int:
    """Hash the words and count each distinct one; return the number of distinct words, or UNSUPPORTED.

    Writes the low and high halves of the distinct digests, their frequencies, and for each word of the text its
    hash as in `Words.hashes`.
    """
    low, high = digests
    slots = _free_slots(len(ends))
    mask = U64(len(slots) - 1)
    distinct, start = 0, U64(0)
    for word in range(len(ends)):
        size = ends[word] - start
        if size > LONGEST:
            return UNSUPPORTED
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
        frequencies[slots[at] - 1] += 1
    return distinct


@compiled
def _vote(low: Hashes, high: Hashes, weights: Numbers) -> Bytes:
    """(16,) uint8: a bit is set if the words whose digests have it outweigh the others."""
    out, total = np.zeros(2 * HALF // 8, np.uint8), weights.sum()
    for bit in range(HALF):
        for_high, for_low, shift = 0, 0, U64(HALF - 1 - bit)
        for word in range(len(weights)):
            for_high += weights[word] & -np.int64(high[word] >> shift & U64(1))
            for_low += weights[word] & -np.int64(low[word] >> shift & U64(1))
        if 2 * for_high > total:
            out[bit // 8] |= 0x80 >> bit % 8
        if 2 * for_low > total:
            out[(HALF + bit) // 8] |= 0x80 >> bit % 8
    return out


@compiled
def _paired(hashes: Hashes) -> Hashes:
    """The hashes of the shingles, in text order, with repetitions; see `minhash.shingles`."""
    if len(hashes) == 1:
        return mixed(hashes)
    return mixed(mixed(hashes[:-1]) + hashes[1:])


@compiled
def _count_distinct(pairs: Hashes) -> int:
    """The number of distinct hashes."""
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
    """Free slots for a hash table of so many entries: a power of two, at least twice as many."""
    slots = 16
    while slots < 2 * entries:
        slots *= 2
    return np.zeros(slots, np.int32)


@compiled
def _minima(pairs: Hashes, multipliers: Hashes, addends: Hashes) -> Bytes:
    """The signature, see `minhash.signature`; repeated shingles do not change a minimum."""
    out = np.empty(len(multipliers), np.uint8)
    for row in range(len(multipliers)):
        least = MAX_HASH
        for pair in range(len(pairs)):
            least = min(least, pairs[pair] * multipliers[row] + addends[row])
        out[row] = mixed(least) >> U64(56)
    return out
