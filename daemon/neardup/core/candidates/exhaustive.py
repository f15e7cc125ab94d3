"""Compares a few stories with all others by their fingerprints, without buckets and without the limits of nomination.

Signatures of unrelated stories agree in 6 of 64 rows once in 4 million pairs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.fingerprint.minhash import SignatureRows
from neardup.core.jit import compiled
from neardup.core.verify.scores import HashRows

ROWS = 6  # that the signatures of a pair agree in, at least

Indices = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Alike(NamedTuple):
    """Pairs of one of some stories and another story: their positions, and the rows in which they agree."""

    ones: Indices
    others: Indices
    rows: Indices


def compare(ones: FingerprintArrays, others: FingerprintArrays, hamming: int) -> Alike:
    """The pairs within the Hamming distance, or whose signatures agree in ROWS rows; stories of one language."""
    bits = ones.simhashes, others.simhashes
    signatures = _words(ones.signatures), _words(others.signatures)
    return Alike(*_alike(*bits, *signatures, ones.signed, others.signed, hamming))


def _words(signatures: SignatureRows) -> Words:
    return np.ascontiguousarray(signatures).view(np.uint64)


@compiled
def _bits(x: np.uint64) -> np.uint64:
    """The bits of a word that are set (Warren, "Hacker's Delight", chapter 5)."""
    x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return x * np.uint64(0x0101010101010101) >> np.uint64(56)


@compiled
def _equal_bytes(x: np.uint64, y: np.uint64) -> np.uint64:
    """How many bytes of two words are equal (Warren, section 6-1)."""
    low = np.uint64(0x7F7F7F7F7F7F7F7F)
    differing = x ^ y
    zeros = ~((differing & low) + low | differing | low)
    return (zeros >> np.uint64(7)) * np.uint64(0x0101010101010101) >> np.uint64(56)


@compiled
def _alike(  # noqa: PLR0917 - arrays of both sides
    simhashes: HashRows,
    other_simhashes: HashRows,
    signatures: Words,
    other_signatures: Words,
    signed: npt.NDArray[np.bool_],
    other_signed: npt.NDArray[np.bool_],
    hamming: int,
) -> tuple[Indices, Indices, Indices]:
    found, count = np.empty((3, 64), np.int64), 0
    for other in range(len(other_simhashes)):
        for one in range(len(simhashes)):
            rows = np.uint64(0)
            if signed[one] and other_signed[other]:
                for word in range(signatures.shape[1]):
                    rows += _equal_bytes(signatures[one, word], other_signatures[other, word])
            if rows < np.uint64(ROWS):
                bits = np.uint64(0)
                for word in range(2):
                    bits += _bits(simhashes[one, word] ^ other_simhashes[other, word])
                if bits > np.uint64(hamming):
                    continue
            if count == found.shape[1]:
                found = np.concatenate((found, found), axis=1)
            found[0, count], found[1, count], found[2, count] = one, other, np.int64(rows)
            count += 1
    return found[0, :count], found[1, :count], found[2, :count]
