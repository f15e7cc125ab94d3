"""Bands of a SimHash, and the pigeonhole rule that makes looking them up exact.

A SimHash is cut into 8 bands of 16 bits.  Two hashes that differ in at most d bits differ in at
most d bands; so of d + 1 groups of bands at least one is equal as a whole (Manku, Jain and
Das Sarma, WWW 2007).  Looking up "all bands of group g are equal" for each g finds every hash
within distance d.  With 8 bands there are at most 8 groups, so d is at most 7.
"""

from functools import cache
from itertools import pairwise

BANDS = 8
MAX_DISTANCE = BANDS - 1


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
