"""Which of many pairs of fingerprints are alike enough for a verifier: the inner loop of nominating."""

import numpy as np
import numpy.typing as npt

from daemon.core.columns import Columns
from daemon.core.jit import compiled
from daemon.core.minhash import ROWS, SignatureRows
from daemon.core.verify import HashRows

Places = npt.NDArray[np.int64]
Limits = npt.NDArray[np.int64]  # (languages, 4): hamming, bands, shared_bands, agreeing_rows
Scores = tuple[npt.NDArray[np.bool_], Places, Places]
Arrays = tuple[npt.NDArray[np.uint8], HashRows, SignatureRows, npt.NDArray[np.bool_]]


def alike(ones: Columns, others: Columns, left: Places, right: Places, limits: Limits) -> Scores:
    """Pairs of stories by their places: which are alike, rows that agree, bits that differ.

    Alike are two of one language that are within its Hamming distance, or share enough of its bands and
    agree in enough rows; who has no signature agrees in none.
    """
    return _pairs(_arrays(ones), _arrays(others), left, right, limits)


def alike_inside(stories: Columns, limits: Limits) -> tuple[Places, Places, Places, Places]:
    """The pairs that are alike among these stories, left < right, with the rows that agree and the bits that differ."""
    left, right = _inside(_arrays(stories), limits)
    _, rows, bits = alike(stories, stories, left, right, limits)
    return left, right, rows, bits


def _arrays(stories: Columns) -> Arrays:
    return stories.languages, stories.simhashes, stories.signatures, stories.signed


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
    languages, simhashes, signatures, signed = ones
    other_languages, other_simhashes, other_signatures, other_signed = others
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
def _inside(stories: Arrays, limits: Limits) -> tuple[Places, Places]:
    left, right, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    languages = stories[0]
    for one in range(len(languages)):
        for other in range(one + 1, len(languages)):
            if languages[one] != languages[other] or not _compared(one, other, stories, stories, limits)[0]:
                continue
            if count == len(left):
                left, right = np.append(left, left), np.append(right, right)
            left[count], right[count] = one, other
            count += 1
    return left[:count], right[:count]
