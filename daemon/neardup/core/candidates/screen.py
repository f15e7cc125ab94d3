"""Which of many pairs of fingerprints are alike enough for a verifier: the inner loop of nominating."""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.jit import compiled
from neardup.core.verify.scores import HashRows

Places = npt.NDArray[np.int64]
Limits = npt.NDArray[np.int64]  # (languages, 4): hamming, bands, shared_bands, agreeing_rows
Scores = tuple[npt.NDArray[np.bool_], Places, Places]
Words = npt.NDArray[np.uint64]  # (n, 8): four bands each
Arrays = tuple[npt.NDArray[np.uint8], HashRows, SignatureRows, npt.NDArray[np.bool_], Words]


def alike(ones: FingerprintArrays, others: FingerprintArrays, left: Places, right: Places, limits: Limits) -> Scores:
    """Pairs of stories by their places: which are alike, rows that agree, bits that differ.

    Alike are two of one language that are within its Hamming distance, or share enough of its bands and
    agree in enough rows; who has no signature agrees in none.
    """
    return _pairs(_arrays(ones), _arrays(others), left, right, limits)


def alike_inside(stories: FingerprintArrays, limits: Limits) -> tuple[Places, Places, Places, Places]:
    """The pairs that are alike among these stories, left < right, with the rows that agree and the bits that differ."""
    return _all_alike(stories, stories, limits, inside=True)


def alike_across(
    ones: FingerprintArrays, others: FingerprintArrays, limits: Limits
) -> tuple[Places, Places, Places, Places]:
    """The same of one of the first and one of the others each."""
    return _all_alike(ones, others, limits, inside=False)


def _all_alike(
    ones: FingerprintArrays, others: FingerprintArrays, limits: Limits, *, inside: bool
) -> tuple[Places, Places, Places, Places]:
    left, right = _each_with_each(_arrays(ones), _arrays(others), limits, inside)
    _, rows, bits = alike(ones, others, left, right, limits)
    return left, right, rows, bits


def _arrays(stories: FingerprintArrays) -> Arrays:
    words = stories.signatures.view(np.uint64)
    return stories.languages, stories.simhashes, stories.signatures, stories.signed, words


@compiled
def _differing(one: HashRows, other: HashRows) -> int:
    """Bits, counted in parallel (Warren, "Hacker's Delight", chapter 5)."""
    count = np.uint64(0)
    for word in range(2):
        x = one[word] ^ other[word]
        x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
        x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count += x * np.uint64(0x0101010101010101) >> np.uint64(56)
    return int(count)


@compiled
def _agreeing(one: SignatureRows, other: SignatureRows) -> int:
    count = 0
    for row in range(ROWS):
        count += one[row] == other[row]
    return count


@compiled
def _shared(one: SignatureRows, other: SignatureRows, bands: int) -> int:
    count = 0
    for band in range(bands):
        count += (one[2 * band] == other[2 * band]) & (one[2 * band + 1] == other[2 * band + 1])
    return count


@compiled
def _compared(one: int, other: int, ones: Arrays, others: Arrays, limits: Limits) -> tuple[bool, int, int]:
    """Whether a pair is alike, the rows that agree, the bits that differ."""
    languages, simhashes, signatures, signed, _ = ones
    other_languages, other_simhashes, other_signatures, other_signed, _ = others
    hamming, bands, shared_bands, agreeing_rows = limits[languages[one]]
    bits, rows, shared = _differing(simhashes[one], other_simhashes[other]), 0, 0
    if signed[one] and other_signed[other]:
        rows = _agreeing(signatures[one], other_signatures[other])
        if rows >= agreeing_rows:
            shared = _shared(signatures[one], other_signatures[other], bands)
    met = bits <= hamming or shared >= shared_bands
    return met and languages[one] == other_languages[other], rows, bits


@compiled
def _pairs(ones: Arrays, others: Arrays, left: Places, right: Places, limits: Limits) -> Scores:
    worth = np.zeros(len(left), np.bool_)
    rows, bits = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    for pair in range(len(left)):
        worth[pair], rows[pair], bits[pair] = _compared(left[pair], right[pair], ones, others, limits)
    return worth, rows, bits


@compiled
def _share_a_band(one: Words, other: Words) -> bool:
    """Whether one of four 16-bit parts of a word is the same in both (Warren, "Hacker's Delight", section 6-1)."""
    zeros = np.uint64(0)
    for word in range(len(one)):
        x = one[word] ^ other[word]
        zeros |= (x - np.uint64(0x0001000100010001)) & ~x & np.uint64(0x8000800080008000)
    return bool(zeros)


@compiled
def _each_with_each(ones: Arrays, others: Arrays, limits: Limits, inside: bool) -> tuple[Places, Places]:
    """Those that are alike; nearly all are strangers, whom a look at their hashes and bands tells."""
    left, right, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    languages, simhashes, _, _, bands = ones
    other_languages, other_simhashes, _, _, other_bands = others
    for one in range(len(languages)):
        hamming = limits[languages[one], 0]
        for other in range(one + 1 if inside else 0, len(other_languages)):
            if languages[one] != other_languages[other]:
                continue
            met = _share_a_band(bands[one], other_bands[other])
            if not met and _differing(simhashes[one], other_simhashes[other]) > hamming:
                continue
            if not _compared(one, other, ones, others, limits)[0]:
                continue
            if count == len(left):
                left, right = np.append(left, left), np.append(right, right)
            left[count], right[count] = one, other
            count += 1
    return left[:count], right[:count]
