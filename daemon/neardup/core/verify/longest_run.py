"""The longest run of words that stands in two texts.

A run of n words contains runs of every smaller length, so the length of the longest one is found by bisection.  Runs of
one length are compared by rolling hash (Karp and Rabin, IBM J. Res. Dev. 1987), modulo 2^64, from prefix sums.  A run
can only begin where the other text has each of its word pairs, too; so few places are tried.
"""

import numpy as np

from neardup.core.fingerprint.word_hashes import Hashes, Places, mix
from neardup.core.sets import are_among

BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
INVERSE = pow(BASE, -1, 1 << 64)


def measure_longest_run(a: Hashes, b: Hashes) -> int:
    """The word hashes of two texts, in order -> the length of their longest common run, in words."""
    reaches = _reach(a, b), _reach(b, a)
    most = 1 + int(min(reach.max(initial=0) for reach in reaches))
    if most == 1:
        return int(are_among(a, b).any())
    sums = _prefix_sums(a), _prefix_sums(b)

    def shared(length: int) -> bool:
        runs_a, runs_b = (
            _run_hashes(prefix, np.flatnonzero(reach >= length - 1), length)
            for prefix, reach in zip(sums, reaches, strict=True)
        )
        return bool(are_among(runs_a, runs_b).any())

    if shared(most):  # usually the longest stretch is a single run
        return most
    least = 2
    while least < most - 1:
        middle = (least + most) // 2
        least, most = (middle, most) if shared(middle) else (least, middle)
    return least


def _reach(a: Hashes, b: Hashes) -> Places:
    """For each word pair of `a`, how many consecutive pairs from there on occur in `b`."""
    pairs_a, pairs_b = (mix(words[:-1]) + words[1:] for words in (a, b))
    places = np.arange(len(pairs_a))
    ends = np.where(are_among(pairs_a, pairs_b), len(pairs_a), places)
    return np.asarray(np.minimum.accumulate(ends[::-1])[::-1] - places)


def _prefix_sums(words: Hashes) -> tuple[Hashes, Hashes]:
    """The sums of words times powers of BASE up to each place, and the powers of its inverse."""
    powers, inverses = (_list_powers(base, len(words)) for base in (BASE, INVERSE))
    return np.append(np.uint64(0), np.add.accumulate(words * powers)), inverses


def _list_powers(base: int, n: int) -> Hashes:
    factors = np.full(n, base, np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


def _run_hashes(prefix: tuple[Hashes, Hashes], starts: Places, length: int) -> Hashes:
    """The hashes of the runs of `length` words that begin at `starts`."""
    sums, inverses = prefix
    return (sums[starts + length] - sums[starts]) * inverses[starts]
