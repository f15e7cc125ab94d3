"""Bands of the two fingerprints, and how many of them two stories must share.

A SimHash is cut into 8 bands of 16 bits.  Two hashes that differ in at most d bits differ in at
most d bands; so of d + 1 groups of bands at least one is equal as a whole (Manku, Jain and
Das Sarma, WWW 2007).  Looking up "all bands of group g are equal" for each g finds every hash
within distance d.  With 8 bands there are at most 8 groups, so d is at most 7.

A signature is cut into bands of two adjacent rows (Indyk and Motwani, STOC 1998; Leskovec, Rajaraman
and Ullman, "Mining of Massive Datasets", chapter 3): of 32 bands two stories of Jaccard similarity J
share each with probability J^2, and candidates share at least `shared` of them.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from daemon.core.minhash import ROWS

BANDS = 8
MAX_DISTANCE = BANDS - 1
ROWS_A_BAND = 2
MAX_SKETCH_BANDS = ROWS // ROWS_A_BAND

Numbers = npt.NDArray[np.uint32]  # the ledger's story numbers


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


def group_values(simhash: bytes, distance: int) -> list[int]:
    """16 bytes -> for each group its leading 32 bits at most, as an integer.

    Equal groups have equal values, so that looking these up misses nothing.
    """
    return [int.from_bytes(simhash[2 * g.start : min(2 * g.stop, 2 * g.start + 4)]) for g in groups(distance)]


def sketch_values(signature: bytes | None, bands: int) -> list[int]:
    """64 bytes -> the values of its first `bands` bands, 16 bits each; none for a story without a signature."""
    return np.frombuffer(signature, ">u2", bands).tolist() if signature else []


def shared_by(members: Numbers, least: int) -> Numbers:
    """The numbers that stand in at least `least` buckets, ascending.

    `members` are those of all the buckets, one after another; a bucket holds no number twice.
    """
    ordered = np.sort(members)
    first, last = ordered[: max(len(ordered) - least + 1, 0)], ordered[least - 1 :]
    return np.unique(first[first == last])
