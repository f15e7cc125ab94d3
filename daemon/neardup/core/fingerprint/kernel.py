"""The fingerprint of a story as one compiled function, from its code points to its hashes.

The results are identical to those of the plain implementation, `fingerprint(tokens(text))`, but the kernel does not
normalise every text.  It returns UNSUPPORTED for a text with a code point BEYOND_TABLE (ß, an Arabic vowel sign, an
accent written as a combining mark, a Cyrillic letter that looks like a Latin one; see `neardup.core.text.codepoints`),
and the caller gives it the normalised text.  It also returns UNSUPPORTED for a word longer than LONGEST bytes, or one
that occurs too often for `weights`; then the caller uses the plain implementation.

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
from neardup.core.text.codepoints import BEYOND_TABLE, CODE, DROPPED, FIRST, SECOND, SEPARATOR, VIRAMA, ZWJ, Codes

Numbers = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]  # a hash table of indices into an array, plus 1; 0 is a free slot

UNSUPPORTED = -1  # returned instead of a number of words
HALF = 64  # the bits of one half of a digest
MAX_HASH = U64(2**64 - 1)

mixed = compiled(word_hashes.mixed)


@compiled
def fingerprint_story(  # noqa: PLR0917 - numba takes no keyword-only arguments
    codes: Codes,
    table: Codes,
    compositions: Codes,
    weights: Numbers,
    permutations: tuple[Hashes, Hashes],
    window: int,
) -> tuple[int, int, Bytes, Bytes, Bytes, PassageHashes]:
    """Code points -> words, distinct shingles, normalised text, SimHash (16 bytes), signature, passage hashes.

    `table` and `compositions` are those of `codepoints`.  `weights` (n,) are the weights of words by term frequency.
    The signature has one byte per permutation; `window` is that of the passage hashes.  If the first number is 0 or
    UNSUPPORTED, the rest is meaningless.
    """
    text, ends = np.empty(4 * len(codes) + 1, np.uint8), np.empty(len(codes) // 2 + 1, np.uint64)
    words = normalise(codes, table, compositions, text, ends)
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
def hash_words(codes: Codes, table: Codes, compositions: Codes) -> tuple[int, Bytes, Hashes]:
    """Code points -> words, normalised text, the hash of each word as in `Words.hashes`.

    If the first number is 0 or UNSUPPORTED, the rest is meaningless.
    """
    text, ends = np.empty(4 * len(codes) + 1, np.uint8), np.empty(len(codes) // 2 + 1, np.uint64)
    words = normalise(codes, table, compositions, text, ends)
    hashes, start = np.empty(max(words, 0), np.uint64), U64(0)
    for word in range(words):
        size = ends[word] - start
        if size > LONGEST:
            return UNSUPPORTED, text, hashes
        hashes[word] = byte_swapped(xxh3_128(text, start, size)[1])
        start = ends[word] + U64(1)
    return words, text[: ends[words - 1]] if words > 0 else text, hashes


@compiled
def normalise(codes: Codes, table: Codes, compositions: Codes, text: Bytes, ends: npt.NDArray[np.uint64]) -> int:
    """Write the words in UTF-8, separated by spaces, and the offset where each ends; return how many, or UNSUPPORTED.

    `codes` (n,) are the text's code points; `table` and `compositions` are those of `codepoints`.  The results are
    written to `text` (at least 4 n bytes) and `ends` (at least n // 2 + 1).
    """
    words, size, before = 0, U64(0), table[SEPARATOR]
    for place in range(len(codes)):
        entry = table[min(codes[place], len(table) - 1)]
        code = entry & CODE
        if entry & BEYOND_TABLE:
            return UNSUPPORTED
        if entry & SECOND and before & FIRST:
            first = before & CODE
            composed = _composition(compositions, first, code)
            if composed:
                size -= U64(3) if first < 0x10000 else U64(4)
                code, entry = composed, table[composed]
        if code > SEPARATOR:
            size = _put(text, size, code)
            before = entry
        elif code == SEPARATOR:
            before = entry
            if size and text[size - U64(1)] != SEPARATOR:
                ends[words] = size
                words += 1
                size = _put(text, size, code)
        else:
            chillu = _chillu(compositions, codes, place)
            if chillu:
                size = _put(text, size - U64(6), chillu)
                before = table[chillu]
    if size and text[size - U64(1)] != SEPARATOR:
        ends[words] = size
        words += 1
    return words


@compiled
def _chillu(compositions: Codes, codes: Codes, place: int) -> np.uint32:
    """The chillu whose letter, virama and ZWJ end at this place; DROPPED if there is none."""
    if codes[place] == ZWJ and place >= 2 and codes[place - 1] == VIRAMA:
        return _composition(compositions, codes[place - 2], ZWJ)
    return np.uint32(DROPPED)


@compiled
def _composition(compositions: Codes, first: int, second: int) -> np.uint32:
    """The code point to which two others compose; DROPPED if they do not."""
    for row in range(len(compositions)):
        if compositions[row, 0] == first and compositions[row, 1] == second:
            return np.uint32(compositions[row, 2])
    return np.uint32(DROPPED)


@compiled
def _put(text: Bytes, size: np.uint64, code: np.uint32) -> np.uint64:
    """Append a code point in UTF-8 after `size` bytes; return the new size."""
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
