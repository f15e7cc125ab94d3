"""The alignment of two texts as compiled functions: the runs of words that both share, joined to blocks.

Numbers of words are in the order of a text, from 0; a place is the number of a word, or of the gram that begins at it.
"""

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import word_hashes
from neardup.core.fingerprint.passage_hashes import GRAM
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.jit import compiled_where_possible

MAX_GAP = 5  # words between two runs of a block, on each side
MIN_RESUMED = 3  # equal words after a gap: unrelated texts often share one or two words within MAX_GAP
# A gram with more pairs of places than this (places in a times places in b) is a refrain or a menu: its places are
# paired by rank, the first with the first.  So the pairs grow with the number of words, not with its square.
MAX_PAIRS = 64

Runs = npt.NDArray[np.int32]  # (n, 3): place in a, place in b, words
Blocks = npt.NDArray[np.int32]  # (n, 4): the same, and the number of the run's block
Places = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Texts = tuple[Hashes, Hashes]  # the words of a and of b
Free = tuple[Mask, Mask]  # the words of a and of b that no block has


mixed = compiled_where_possible(word_hashes.mixed)


@compiled_where_possible
def shared_runs(texts: Texts) -> tuple[Runs, bool]:
    """Word hashes of two texts, of GRAM words or more -> their maximal shared runs of as many, the longest first.

    Runs of equal length are in the order of a, then of b.  Also returned: whether these are all, which they are unless
    a gram has more than MAX_PAIRS pairs of places.
    """
    a, b = texts
    slots, first, following, pairs = _places_of_grams((grams_of(a), grams_of(b)))
    found, n = np.empty((64, 3), np.int32), 0
    reached = np.zeros(len(a) + len(b), np.int32)  # by diagonal: where its last run ends in a
    for place in range(len(slots)):
        slot = slots[place]
        other = first[slot] if slot >= 0 else -1
        while other >= 0:
            diagonal = other - place + len(a)
            if reached[diagonal] <= place:
                back = 0
                while place - back > reached[diagonal] and other > back and a[place - back - 1] == b[other - back - 1]:
                    back += 1
                end = GRAM
                while place + end < len(a) and other + end < len(b) and a[place + end] == b[other + end]:
                    end += 1
                if n == len(found):
                    found = np.concatenate((found, np.empty_like(found)))
                found[n, 0], found[n, 1], found[n, 2] = place - back, other - back, back + end
                reached[diagonal] = place + end
                n += 1
            if pairs[slot] > MAX_PAIRS:
                first[slot] = following[other]  # the next place in a is paired with the next in b
                break
            other = following[other]
    return found[:n][np.argsort(-found[:n, 2], kind="mergesort")], pairs.max() <= MAX_PAIRS


@compiled_where_possible
def grams_of(words: Hashes) -> Hashes:
    """As `passage_hashes.grams_of`, in a fifth of the time."""
    pairs = mixed(mixed(words[:-1]) + words[1:])
    return mixed(mixed(pairs[:-2]) + pairs[2:])


@compiled_where_possible
def _places_of_grams(grams: Texts) -> tuple[Places, Places, Places, npt.NDArray[np.int64]]:
    """Index the places of b's grams by a hash table.

    Returns the slot of each gram of a (-1: not in b); by slot, the first place of its gram in b and the number of
    pairs of places; and for each place in b the next with the same gram (-1: none).
    """
    grams_a, grams_b = grams
    size = 2
    while size < 2 * len(grams_b):
        size *= 2
    mask = np.uint64(size - 1)
    first, following = np.full(size, -1, np.int32), np.full(len(grams_b), -1, np.int32)
    in_a, in_b = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for place in range(len(grams_b) - 1, -1, -1):
        slot = np.int64(grams_b[place] & mask)
        while first[slot] >= 0 and grams_b[first[slot]] != grams_b[place]:
            slot = (slot + 1) & (size - 1)
        following[place] = first[slot]
        first[slot] = place
        in_b[slot] += 1
    slots = np.full(len(grams_a), -1, np.int32)
    for place in range(len(grams_a)):
        slot = np.int64(grams_a[place] & mask)
        while first[slot] >= 0 and grams_b[first[slot]] != grams_a[place]:
            slot = (slot + 1) & (size - 1)
        if first[slot] >= 0:
            slots[place] = slot
            in_a[slot] += 1
    return slots, first, following, in_a * in_b


@compiled_where_possible
def joined(texts: Texts, runs: Runs, min_block: int) -> Blocks:
    """Join runs (as `shared_runs` gives them) to blocks, and drop the blocks of fewer than `min_block` equal words.

    A block begins with the longest run that is left and grows at both ends, over gaps of up to MAX_GAP words.  The
    runs of a block are in the order of both texts, and blocks share no word.  Runs and blocks are in the order of a.
    """
    free = np.ones(len(texts[0]), np.bool_), np.ones(len(texts[1]), np.bool_)
    found, n, block = np.empty((64, 4), np.int32), 0, 0
    for run in runs:
        at_a, at_b, end = run[0], run[1], run[0] + run[2]
        while at_a < end:
            words = _equal(texts, free, (at_a, at_b), 1)
            if words >= GRAM:
                before = n
                found, n = _grown(texts, free, (at_a - 1, at_b - 1), -1, (found, n))
                found[before:n] = found[before:n][::-1].copy()
                found, n = _grown(texts, free, (at_a, at_b), 1, (found, n))
                if found[before:n, 2].sum() < min_block:
                    n = before
                else:
                    found[before:n, 3] = block
                    block += 1
                    first, last = found[before], found[n - 1]
                    free[0][first[0] : last[0] + last[2]] = False
                    free[1][first[1] : last[1] + last[2]] = False
            at_a, at_b = at_a + words + 1, at_b + words + 1
    return _numbered(found[:n])


@compiled_where_possible
def _numbered(runs: Blocks) -> Blocks:
    """The runs in the order of a, with the blocks numbered in this order."""
    ordered, block, before = runs[np.argsort(runs[:, 0])], -1, -1
    for n in range(len(ordered)):
        is_new = ordered[n, 3] != before
        before = ordered[n, 3]
        block += is_new
        ordered[n, 3] = block
    return ordered


@compiled_where_possible
def _grown(texts: Texts, free: Free, at: tuple[int, int], way: int, blocks: tuple[Blocks, int]) -> tuple[Blocks, int]:
    """Append the runs of a block from the words `at` on: forwards (`way` 1), or backwards (`way` -1).

    `blocks` are the runs so far and their number, as returned.
    """
    found, n = blocks
    at_a, at_b = at
    words = _equal(texts, free, at, way)
    while True:
        if words:
            if n == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            back = words - 1 if way < 0 else 0
            found[n, 0], found[n, 1], found[n, 2] = at_a - back, at_b - back, words
            n += 1
            at_a, at_b = at_a + way * words, at_b + way * words
        gap_a, gap_b, words = _resumed(texts, free, (at_a, at_b), way)
        if not words:
            return found, n
        at_a, at_b = at_a + way * gap_a, at_b + way * gap_b


@compiled_where_possible
def _resumed(texts: Texts, free: Free, at: tuple[int, int], way: int) -> tuple[int, int, int]:
    """The shortest gap after which equal words go on: its words in a and in b, and those equal words (0: none)."""
    at_a, at_b = at
    most_a, most_b = _gap(free[0], at_a, way), _gap(free[1], at_b, way)
    for gaps in range(1, most_a + most_b + 1):
        for gap_a in range(max(0, gaps - most_b), min(gaps, most_a) + 1):
            gap_b = gaps - gap_a
            words = _equal(texts, free, (at_a + way * gap_a, at_b + way * gap_b), way)
            if words >= MIN_RESUMED:
                return gap_a, gap_b, words
    return 0, 0, 0


@compiled_where_possible
def _gap(free: Mask, at: int, way: int) -> int:
    """The number of words, at most MAX_GAP, from this one on that no block has."""
    words = 0
    while words < MAX_GAP and 0 <= at < len(free) and free[at]:
        at, words = at + way, words + 1
    return words


@compiled_where_possible
def _equal(texts: Texts, free: Free, at: tuple[int, int], way: int) -> int:
    """The number of equal words from these on that no block has."""
    a, b = texts
    free_a, free_b = free
    at_a, at_b = at
    words = 0
    while 0 <= at_a < len(a) and 0 <= at_b < len(b) and a[at_a] == b[at_b] and free_a[at_a] and free_b[at_b]:
        at_a, at_b, words = at_a + way, at_b + way, words + 1
    return words
