"""Bands of the two fingerprints, and how many of them two stories must share.

A SimHash is cut into 8 bands of 16 bits.  Two hashes that differ in at most d bits differ in at
most d bands; so of d + 1 groups of bands at least one is equal as a whole (Manku, Jain and
Das Sarma, WWW 2007).  Looking up "all bands of group g are equal" for each g finds every hash
within distance d.  With 8 bands there are at most 8 groups, so d is at most 7.

By the same argument, of d + 2 blocks at least two are equal.  A packed index (neardup.index.packed_buckets)
stands on these: a bucket need not be small then, for a stranger seldom stands in two.

A signature is cut into bands of two adjacent rows (Indyk and Motwani, STOC 1998; Leskovec, Rajaraman
and Ullman, "Mining of Massive Datasets", chapter 3): of 32 bands two stories of Jaccard similarity J
share each with probability J^2, and candidates share at least `shared` of them.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.fingerprint.word_hashes import mixed

BANDS = 8
MAX_DISTANCE = BANDS - 1
ROWS_A_BAND = 2
MAX_SKETCH_BANDS = ROWS // ROWS_A_BAND
MAX_BLOCKS = MAX_DISTANCE + 2
SHARED_BLOCKS = 2
HASH_BITS = 128
WORD_BITS = 64
BAND_BITS = 16
ODD = np.uint16(40503)  # Knuth, "The Art of Computer Programming", volume 3, section 6.4


Numbers = npt.NDArray[np.uint32]  # the ledger's story numbers
Values = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Banding:
    """How the stories of a language are banded and looked up.

    `hamming` must not be missed by a lookup; `bands` are those of the signature, of which a candidate
    shares at least `shared`; of a bucket no more than `max_bucket` members are looked at.
    """

    hamming: int = 3
    bands: int = MAX_SKETCH_BANDS
    shared: int = 2
    max_bucket: int = 5000


@cache
def groups(distance: int) -> tuple[range, ...]:
    """Band numbers 0..7 in distance + 1 runs, as even as can be: four pairs for distance 3.

    Raises ValueError for a distance that 8 bands cannot guarantee.
    """
    if not 0 <= distance <= MAX_DISTANCE:
        raise ValueError(
            f"{BANDS} bands find every pair of Hamming distance 0 to {MAX_DISTANCE}, not {distance}: "
            "a whole band must stay untouched, so the bits that differ must be fewer than the bands"
        )
    n = distance + 1
    edges = [i * BANDS // n for i in range(n + 1)]
    return tuple(range(a, b) for a, b in pairwise(edges))


def band_values(simhash: bytes) -> list[str]:
    """16 bytes -> the 8 band values, 4 upper-case hexadecimal digits each."""
    digits = simhash.hex().upper()
    return [digits[i : i + 4] for i in range(0, 4 * BANDS, 4)]


def block_values(simhashes: npt.NDArray[np.uint64], distance: int, bits: int) -> Values:
    """(n, 2) SimHashes -> (n, distance + 2): each block hashed to so many bits, 16 at most.

    Two hashes within the distance are equal in SHARED_BLOCKS blocks at least.  In prose the bits of a
    SimHash lean to one side, and some 16 of them are alike in a hundredth of a language; hashing all the
    bits of a block spreads its buckets evenly.
    """
    words = simhashes.view(">u8").astype(np.uint64)
    count = distance + SHARED_BLOCKS
    edges = [n * HASH_BITS // count for n in range(count + 1)]
    blocks = [_bits(words, start, stop) for start, stop in pairwise(edges)]
    return (mixed(np.stack(blocks, axis=1)) >> np.uint64(WORD_BITS - bits)).astype(np.uint16)


def _bits(words: npt.NDArray[np.uint64], start: int, stop: int) -> npt.NDArray[np.uint64]:
    """Bits start to stop, 64 at most, of two words, the most significant first."""
    if stop <= WORD_BITS:
        found = words[:, 0] >> np.uint64(WORD_BITS - stop)
    elif start >= WORD_BITS:
        found = words[:, 1] >> np.uint64(HASH_BITS - stop)
    else:
        found = words[:, 0] << np.uint64(stop - WORD_BITS) | words[:, 1] >> np.uint64(HASH_BITS - stop)
    return np.asarray(found & np.uint64((1 << stop - start) - 1))


def narrowed(signatures: SignatureRows, bands: int, bits: int) -> Values:
    """(n, 64) signatures -> (n, bands): each band hashed to so many bits, 16 at most.

    16 bits are the band as it is.  To fewer it is hashed, for dropping its last bits would join a frequent
    row's neighbours, and make the fullest buckets fuller.
    """
    values = np.ascontiguousarray(signatures[:, : bands * ROWS_A_BAND]).view(">u2").astype(np.uint16)
    return values if bits == BAND_BITS else values * ODD >> np.uint16(BAND_BITS - bits)
