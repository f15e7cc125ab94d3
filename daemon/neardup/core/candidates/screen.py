"""Selects the pairs of similar fingerprints, which are worth verifying: the inner loop of nomination.

Two stories are alike if they are of one language and either their SimHashes are within its Hamming distance, or their
signatures share enough of its bands and agree in enough rows.  A missing signature agrees with none.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.jit import compiled
from neardup.core.verify.scores import HashRows

Indices = npt.NDArray[np.int64]
Thresholds = npt.NDArray[np.int64]  # (languages, 4): hamming, bands, shared_bands, agreeing_rows
Scores = tuple[npt.NDArray[np.bool_], Indices, Indices]  # of each pair: alike, rows that agree, bits that differ
BandWords = npt.NDArray[np.uint64]  # (n, 8): signatures, four bands per word
Arrays = tuple[npt.NDArray[np.uint8], HashRows, SignatureRows, npt.NDArray[np.bool_], BandWords]


def alike(
    ones: FingerprintArrays, others: FingerprintArrays, left: Indices, right: Indices, thresholds: Thresholds
) -> Scores:
    """Score the pairs of ones[left[i]] and others[right[i]]."""
    return _score_pairs(_arrays(ones), _arrays(others), left, right, thresholds)


def alike_inside(stories: FingerprintArrays, thresholds: Thresholds) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs among these stories that are alike, left < right: left, right, rows that agree, bits that differ."""
    return _all_alike(stories, stories, thresholds, inside=True)


def alike_across(
    ones: FingerprintArrays, others: FingerprintArrays, thresholds: Thresholds
) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs of one of `ones` and one of `others` that are alike, as in `alike_inside`."""
    return _all_alike(ones, others, thresholds, inside=False)


def _all_alike(
    ones: FingerprintArrays, others: FingerprintArrays, thresholds: Thresholds, *, inside: bool
) -> tuple[Indices, Indices, Indices, Indices]:
    left, right = _all_pairs_alike(_arrays(ones), _arrays(others), thresholds, inside)
    _, rows, bits = alike(ones, others, left, right, thresholds)
    return left, right, rows, bits


def _arrays(stories: FingerprintArrays) -> Arrays:
    words = stories.signatures.view(np.uint64)
    return stories.languages, stories.simhashes, stories.signatures, stories.signed, words


@compiled
def _hamming(one: HashRows, other: HashRows) -> int:
    """The Hamming distance; bits are counted in parallel (Warren, "Hacker's Delight", chapter 5)."""
    count = np.uint64(0)
    for word in range(2):
        x = one[word] ^ other[word]
        x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
        x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count += x * np.uint64(0x0101010101010101) >> np.uint64(56)
    return int(count)


@compiled
def hamming_distance(one: int, other: int, arrays: Arrays) -> int:
    """How many bits of two stories' SimHashes differ."""
    return _hamming(arrays[1][one], arrays[1][other])


@compiled
def _count_agreeing_rows(one: SignatureRows, other: SignatureRows) -> int:
    count = 0
    for row in range(ROWS):
        count += one[row] == other[row]
    return count


@compiled
def _count_shared_bands(one: SignatureRows, other: SignatureRows, bands: int) -> int:
    count = 0
    for band in range(bands):
        count += (one[2 * band] == other[2 * band]) & (one[2 * band + 1] == other[2 * band + 1])
    return count


@compiled
def score_pair(one: int, other: int, ones: Arrays, others: Arrays, thresholds: Thresholds) -> tuple[bool, int, int]:
    """The scores of one pair."""
    languages, simhashes, signatures, signed, _ = ones
    other_languages, other_simhashes, other_signatures, other_signed, _ = others
    hamming, bands, shared_bands, agreeing_rows = thresholds[languages[one]]
    bits, rows, shared = _hamming(simhashes[one], other_simhashes[other]), 0, 0
    if signed[one] and other_signed[other]:
        rows = _count_agreeing_rows(signatures[one], other_signatures[other])
        if rows >= agreeing_rows:
            shared = _count_shared_bands(signatures[one], other_signatures[other], bands)
    is_alike = bits <= hamming or shared >= shared_bands
    return is_alike and languages[one] == other_languages[other], rows, bits


@compiled
def _score_pairs(ones: Arrays, others: Arrays, left: Indices, right: Indices, thresholds: Thresholds) -> Scores:
    is_alike = np.zeros(len(left), np.bool_)
    rows, bits = np.zeros(len(left), np.int64), np.zeros(len(left), np.int64)
    for pair in range(len(left)):
        is_alike[pair], rows[pair], bits[pair] = score_pair(left[pair], right[pair], ones, others, thresholds)
    return is_alike, rows, bits


@compiled
def _share_a_band(one: BandWords, other: BandWords) -> bool:
    """Whether two signatures share a band.

    Finds equal 16-bit parts of words as zeros of their difference (Warren, "Hacker's Delight", section 6-1).
    """
    zeros = np.uint64(0)
    for word in range(len(one)):
        x = one[word] ^ other[word]
        zeros |= (x - np.uint64(0x0001000100010001)) & ~x & np.uint64(0x8000800080008000)
    return bool(zeros)


@compiled
def _all_pairs_alike(ones: Arrays, others: Arrays, thresholds: Thresholds, inside: bool) -> tuple[Indices, Indices]:
    """The pairs that are alike: left, right.

    Nearly all pairs are of unrelated stories, and cheap checks of their bands and SimHashes rule them out first.
    """
    left, right, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    languages, simhashes, _, _, bands = ones
    other_languages, other_simhashes, _, _, other_bands = others
    for one in range(len(languages)):
        hamming = thresholds[languages[one], 0]
        for other in range(one + 1 if inside else 0, len(other_languages)):
            if languages[one] != other_languages[other]:
                continue
            shares_band = _share_a_band(bands[one], other_bands[other])
            if not shares_band and _hamming(simhashes[one], other_simhashes[other]) > hamming:
                continue
            if not score_pair(one, other, ones, others, thresholds)[0]:
                continue
            if count == len(left):
                left, right = np.append(left, left), np.append(right, right)
            left[count], right[count] = one, other
            count += 1
    return left[:count], right[:count]
