"""The passages that two stories share, as evidence for moderators, and the longest run of words in both.

Greedy string tiling (Wise, "YAP3", SIGCSE 1996): repeatedly take the longest run of words that both stories share and
of which no word is taken yet, until the rest is too short.  As in his Running Karp-Rabin matching, only runs that begin
with an equal gram of MIN_PASSAGE words are considered, so unrelated stories cost nothing.

A run of n words contains runs of every smaller length, so the length of the longest one is found by bisection.  Runs of
one length are compared by rolling hash (Karp and Rabin, IBM J. Res. Dev. 1987), modulo 2^64, from prefix sums.  A run
can only begin where the other text has each of its word pairs, too; so few places are tried.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from neardup.core.fingerprint.word_hashes import Hashes, Places, mix
from neardup.core.verify.sets import are_among

# Two unrelated Hindi stories of 1,300 words share two runs of 4 words on average, but eight of 3 (fewer
# in the other languages); and where a word in ten was replaced, runs of 4 and more hold five sixths.
MIN_PASSAGE = 4
# A gram with more pairs of places than this (places in a times places in b) is a refrain or a menu: its places are
# paired by rank, the first with the first.  So the pairs grow with the number of words, not with its square.  The
# price: a passage that consists of such grams alone may be found in parts.
MAX_PAIRS = 64

BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
INVERSE = pow(BASE, -1, 1 << 64)


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of `words` words that both stories share, and the places of its first word, from 0."""

    start_a: int
    start_b: int
    words: int


def passages(a: Hashes, b: Hashes) -> list[Passage]:
    """Word hashes (n,) and (m,), in reading order -> the shared passages, longest first, then by place.

    Each word is in at most one passage, and no passage could be longer without taking a word twice.  The passages
    leave no shared run of MIN_PASSAGE words uncovered.  `passages(b, a)` are the same with sides exchanged.
    """
    exchanged = (len(b), b.tobytes()) < (len(a), a.tobytes())
    a, b = (b.copy(), a.copy()) if exchanged else (a.copy(), b.copy())
    found: list[Passage] = []
    while tiles := list(_tiles(a, b)):
        found += tiles
        for tile in tiles:  # unique numbers, so that covered words match nothing
            a[tile.start_a : tile.start_a + tile.words] = np.arange(tile.start_a, tile.start_a + tile.words)
            b[tile.start_b : tile.start_b + tile.words] = np.arange(tile.words) + len(a) + tile.start_b
    if exchanged:
        found = [Passage(tile.start_b, tile.start_a, tile.words) for tile in found]
    return sorted(found, key=lambda tile: (-tile.words, tile.start_a, tile.start_b))


def _tiles(a: Hashes, b: Hashes) -> Iterator[Passage]:
    """One round of greedy string tiling."""
    taken_a, taken_b = np.zeros(len(a), bool), np.zeros(len(b), bool)
    waiting = [(-n, at_a, at_b) for at_a, at_b, n in _runs(a, b)]
    heapq.heapify(waiting)
    while waiting:
        n, at_a, at_b = heapq.heappop(waiting)
        within_a, within_b = slice(at_a, at_a - n), slice(at_b, at_b - n)
        is_taken = taken_a[within_a] | taken_b[within_b]
        if not is_taken.any():
            taken_a[within_a] = taken_b[within_b] = True
            yield Passage(at_a, at_b, -n)
            continue
        edges = np.flatnonzero(np.diff(np.concatenate(([True], is_taken, [True]))))
        for start, end in edges.reshape(-1, 2).tolist():
            if end - start >= MIN_PASSAGE:
                heapq.heappush(waiting, (start - end, at_a + start, at_b + start))


def _runs(a: Hashes, b: Hashes) -> Iterable[tuple[int, int, int]]:
    """The maximal runs of words that both stories share: place in a, place in b, words."""
    at_a, at_b = _pair_places(_grams(a), _grams(b))
    if not len(at_a):
        return ()
    doublings = list(zip(_double_runs(a), _double_runs(b), strict=False))  # as many as the shorter has
    back = _extent(doublings, at_a, at_b, -1)
    at_a, at_b = np.unique(np.stack((at_a - back, at_b - back)), axis=1)
    return zip(at_a.tolist(), at_b.tolist(), _extent(doublings, at_a, at_b, 1).tolist(), strict=True)


def _grams(words: Hashes) -> Hashes:
    """(n - MIN_PASSAGE + 1,) the hash of the MIN_PASSAGE words that begin at each place."""
    n = max(len(words) - MIN_PASSAGE + 1, 0)
    grams = words[:n]
    for offset in range(1, MIN_PASSAGE):
        grams = mix(grams) + words[offset : offset + n]
    return grams


def _pair_places(a: Hashes, b: Hashes) -> tuple[Places, Places]:
    """Places of equal grams: all pairs of them, or by rank where those are more than MAX_PAIRS."""
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    grams_a, first_a, count_a = np.unique(a[order_a], return_index=True, return_counts=True)
    grams_b, first_b, count_b = np.unique(b[order_b], return_index=True, return_counts=True)
    _, in_a, in_b = np.intersect1d(grams_a, grams_b, assume_unique=True, return_indices=True)
    many_a, many_b = count_a[in_a], count_b[in_b]
    few = many_a * many_b <= MAX_PAIRS
    pairs = np.where(few, many_a * many_b, np.minimum(many_a, many_b))
    gram = np.repeat(np.arange(len(pairs)), pairs)
    nth = np.arange(len(gram)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    rank_a = np.where(few[gram], nth // many_b[gram], nth)
    rank_b = np.where(few[gram], nth % many_b[gram], nth)
    return order_a[first_a[in_a][gram] + rank_a], order_b[first_b[in_b][gram] + rank_b]


def _double_runs(words: Hashes) -> Iterator[Hashes]:
    """The hashes of the runs of 1, 2, 4, ... words that begin at each place (Karp, Miller and Rosenberg, STOC 1972)."""
    step = 1
    while len(words):
        yield words
        words, step = mix(words[:-step]) + words[step:], 2 * step


def _extent(doublings: list[tuple[Hashes, Hashes]], at_a: Places, at_b: Places, way: int) -> Places:
    """(n,) The number of equal words from each pair of places on (`way` 1), or before them (`way` -1)."""
    equal = np.zeros(len(at_a), np.intp)
    for power, (runs_a, runs_b) in reversed(list(enumerate(doublings))):
        step = 1 << power
        run_a, run_b = (at + way * equal - (step if way < 0 else 0) for at in (at_a, at_b))
        inside = (np.minimum(run_a, run_b) >= 0) & (run_a < len(runs_a)) & (run_b < len(runs_b))
        # outside, -1 is any valid place: `inside` masks the result
        same = runs_a[np.where(inside, run_a, -1)] == runs_b[np.where(inside, run_b, -1)]
        equal += step * (inside & same)
    return equal


def longest_run(a: Hashes, b: Hashes) -> int:
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
    powers, inverses = (_powers(base, len(words)) for base in (BASE, INVERSE))
    return np.append(np.uint64(0), np.add.accumulate(words * powers)), inverses


def _powers(base: int, n: int) -> Hashes:
    factors = np.full(n, base, np.uint64)
    factors[:1] = 1
    return np.multiply.accumulate(factors)


def _run_hashes(prefix: tuple[Hashes, Hashes], starts: Places, length: int) -> Hashes:
    """The hashes of the runs of `length` words that begin at `starts`."""
    sums, inverses = prefix
    return (sums[starts + length] - sums[starts]) * inverses[starts]
