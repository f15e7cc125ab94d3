"""The MinHash signature of a story: 64 bytes that estimate the Jaccard similarity of two stories' shingles.

Broder, "On the resemblance and containment of documents" (SEQUENCES 1997).  Of each
minimum one byte is stored: Li and König, "b-Bit minwise hashing" (WWW 2010).

A shingle is a pair of adjacent words.  Row p of a signature is the top byte of the least hash among
a story's shingles under permutation p.  Two stories of Jaccard similarity J agree in a row with
probability J + (1 - J) / 256.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.permutations import ADDENDS, MULTIPLIERS
from neardup.core.fingerprint.word_hashes import Hashes, mixed

ROWS = len(MULTIPLIERS)
MIN_SHINGLES = 20  # with fewer, one changed word changes a tenth of the rows, and short greetings resemble each other
FEW_SHINGLES = "few_shingles"  # metric label and log word for a fingerprinted story without a signature
CHANCE_AGREEMENT = 1 / 256  # the probability that two unequal minima have the same top byte

Number = TypeVar("Number", np.uint32, np.uint64)
SignatureRows = npt.NDArray[np.uint8]  # (n, 64)


def shingles(hashes: Hashes) -> Hashes:
    """The hashes of a story's words, at least one -> (n,) uint64: those of its distinct word pairs, ascending.

    A single word is one shingle.
    """
    return distinct(word_pairs(hashes) if len(hashes) > 1 else mixed(hashes))


def word_pairs(hashes: Hashes) -> Hashes:
    """The hashes of n words -> (n - 1,) uint64: those of each two adjacent ones, in reading order."""
    return mixed(mixed(hashes[:-1]) + hashes[1:])


def distinct(hashes: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(n,) hashes -> the distinct ones, ascending, in a tenth of the time of np.unique."""
    ascending = np.sort(hashes)
    is_first = np.ones(len(hashes), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return np.asarray(ascending[is_first])


def signature(shingle_hashes: Hashes) -> bytes | None:
    """Hashes of distinct shingles -> 64 bytes; None for fewer than MIN_SHINGLES."""
    if len(shingle_hashes) < MIN_SHINGLES:
        return None
    permuted = shingle_hashes[:, None] * MULTIPLIERS
    permuted += ADDENDS  # in place: a second array of this size costs several times the arithmetic
    least: Hashes = permuted.min(axis=0)
    return (mixed(least) >> np.uint64(56)).astype(np.uint8).tobytes()


def signature_rows(signatures: Sequence[bytes | None]) -> SignatureRows:
    """N signatures -> (n, 64) uint8; zeros for None."""
    return np.frombuffer(b"".join(s or bytes(ROWS) for s in signatures), np.uint8).reshape(-1, ROWS)


def agreeing(left: SignatureRows, right: SignatureRows) -> npt.NDArray[np.int64]:
    """The number of rows in which signatures agree; shapes broadcast over all but the last axis."""
    return np.asarray(np.bitwise_count(np.packbits(left == right, axis=-1)).sum(axis=-1, dtype=np.int64))


def estimated_jaccard(agreeing_rows: int) -> float:
    """The Jaccard similarity estimated from the number of agreeing rows, of 64; 0 to 1."""
    return max(0.0, (agreeing_rows / ROWS - CHANCE_AGREEMENT) / (1 - CHANCE_AGREEMENT))
