"""Selects the pairs of similar fingerprints, which are worth verifying: the inner loop of nomination.

Two stories are alike if they are of one language and either their SimHashes are within its Hamming distance, or their
signatures share enough of its bands and agree in enough rows.  A missing signature agrees with none.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import ROWS_A_BAND
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.fingerprint.minhash import SignatureRows
from neardup.core.native import candidates as native
from neardup.core.native import in_c
from neardup.core.verify.scores import HashRows, hamming

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Thresholds = npt.NDArray[np.int64]  # (languages, 4): hamming, bands, shared_bands, agreeing_rows
Scores = tuple[Flags, Indices, Indices]  # of each pair: alike, rows that agree, bits that differ
Arrays = tuple[npt.NDArray[np.uint8], HashRows, SignatureRows, Flags]  # languages, SimHashes, signatures, signed


def alike(
    ones: FingerprintArrays, others: FingerprintArrays, left: Indices, right: Indices, thresholds: Thresholds
) -> Scores:
    """Score the pairs of ones[left[i]] and others[right[i]]."""
    return score_pairs(columns_of(ones), columns_of(others), left, right, thresholds)


def alike_inside(stories: FingerprintArrays, thresholds: Thresholds) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs among these stories that are alike, left < right: left, right, rows that agree, bits that differ."""
    arrays = columns_of(stories)
    return alike_pairs(arrays, arrays, thresholds, True)


def alike_across(
    ones: FingerprintArrays, others: FingerprintArrays, thresholds: Thresholds
) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs of one of `ones` and one of `others` that are alike, as in `alike_inside`."""
    return alike_pairs(columns_of(ones), columns_of(others), thresholds, False)


def columns_of(stories: FingerprintArrays) -> Arrays:
    """The arrays of n stories that a comparison needs."""
    return stories.languages, stories.simhashes, stories.signatures, stories.signed


@in_c(native.score_pairs)
def score_pairs(ones: Arrays, others: Arrays, left: Indices, right: Indices, thresholds: Thresholds) -> Scores:
    """Score the pairs (m,) of `ones` and `others` by the thresholds of the first one's language."""
    languages, simhashes, signatures, signed = ones
    other_languages, other_simhashes, other_signatures, other_signed = others
    most_bits, bands, shared_bands, agreeing_rows = thresholds[languages[left]].T
    bits = hamming(simhashes[left], other_simhashes[right])
    equal = (signatures[left] == other_signatures[right]) & (signed[left] & other_signed[right])[:, None]
    rows = equal.sum(axis=1)
    equal_bands = equal[:, ::ROWS_A_BAND] & equal[:, 1::ROWS_A_BAND]
    shared = (equal_bands & (np.arange(equal_bands.shape[1]) < bands[:, None])).sum(axis=1)
    shared[rows < agreeing_rows] = 0
    is_alike = ((bits <= most_bits) | (shared >= shared_bands)) & (languages[left] == other_languages[right])
    return is_alike, rows, bits


@in_c(native.alike_pairs)
def alike_pairs(
    ones: Arrays, others: Arrays, thresholds: Thresholds, inside: bool
) -> tuple[Indices, Indices, Indices, Indices]:
    """The pairs of `ones` and `others` that are alike and share a band or are near; left < right if they are `inside`.

    Gives left, right, rows that agree, and bits that differ.
    """
    found = [np.zeros((4, 0), np.int64)]
    for one, hamming_limit in enumerate(thresholds[ones[0], 0].tolist()):
        right = np.arange(one + 1 if inside else 0, len(others[0]))
        left = np.full(len(right), one)
        is_alike, rows, bits = score_pairs.reference(ones, others, left, right, thresholds)
        equal = ones[2][one] == others[2][right]
        shares_band = (equal[:, ::ROWS_A_BAND] & equal[:, 1::ROWS_A_BAND]).any(axis=1)
        is_found = is_alike & (shares_band | (bits <= hamming_limit))
        found.append(np.stack((left, right, rows, bits))[:, is_found])
    left, right, rows, bits = np.concatenate(found, axis=1)
    return left, right, rows, bits
