"""The alignment of two texts: the passages that one copied from the other, edited ones included, and what they come to.

Seed and extend, as in sequence alignment (Altschul et al., "Basic local alignment search tool", J. Mol. Biol. 1990):
the shared runs of words are the seeds, and a block grows from the longest run that is left over gaps of a few words.
Blocks of fewer than MIN_BLOCK equal words do not count, so unrelated texts have nothing in common.  The words of the
blocks are counted without repetitions and without common passages.

The longest run of all is found by bisection where the alignment leaves it open, since a run of n words contains runs of
every smaller length.  Runs of one length are compared by rolling hash (Karp and Rabin, IBM J. Res. Dev. 1987), modulo
2^64, from prefix sums.  A run can only begin where the other text has each of its word pairs, too; so few places are
tried.

Numbers of words are in the order of a text, from 0; a place is the number of a word, or of the gram of GRAM words that
begins at it.  The references are in plain Python, a hundred times as slow as the native functions.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import (
    GRAM,
    WINDOW,
    Hashes,
    PassageHashes,
    Places,
    hash_word_pairs,
    sample_grams,
)
from neardup.core.native import comparison as native
from neardup.core.native import in_c
from neardup.core.sets import ONE_PAIR, Pairs, are_among, are_among_ascending, concatenate_ranges, find_distinct
from neardup.records import MIN_BLOCK, NO_SPANS, Copied, Spans

Blocks = npt.NDArray[np.int32]  # (n, 4): place in a, place in b, number of words and number of the block of each run
Mask = npt.NDArray[np.bool_]  # (words,)

MAX_GAP = 5  # words between two runs of a block, on each side
MIN_RESUMED = 3  # equal words after a gap: unrelated texts often share one or two words within MAX_GAP
# A gram with more pairs of places than this (places in a times places in b) is a refrain or a menu: its places are
# paired by rank, the first with the first.  So the pairs grow with the number of words, not with its square.
MAX_PAIRS = 64

PairedSpans = npt.NDArray[np.int32]  # (n, 4): words [start, end) of a, and the words [start, end) of b that copy them
Run = tuple[int, int, int]  # place in a, place in b, words

NO_HASHES: PassageHashes = np.empty(0, np.uint32)

BASE = 0x9E3779B97F4A7C15  # of the rolling hash; odd, so that it has an inverse
INVERSE = pow(BASE, -1, 1 << 64)


def find_copied(a: Hashes, b: Hashes, common: PassageHashes = NO_HASHES) -> Copied:
    """Word hashes (n,) and (m,), in reading order -> what they share; the rest is as in `find_copied_of_pairs`."""
    return find_copied_of_pairs((a, b), ONE_PAIR, common)[0]


@in_c(native.find_copied_of_pairs)
def find_copied_of_pairs(texts: Sequence[Hashes], pairs: Pairs, common: PassageHashes) -> list[Copied]:
    """The word hashes of texts, in reading order -> what the texts of each pair share.

    A pair is the places of its texts, and how many equal words their blocks must have; otherwise they share nothing.
    `common` are the hashes of common passages, ascending.  Pairs (b, a) are the same with sides exchanged.
    """
    return [_find_copied(texts[a], texts[b], common, at_least) for a, b, at_least in pairs.tolist()]


def _find_copied(a: Hashes, b: Hashes, common: PassageHashes, at_least: int) -> Copied:
    if _is_exchanged(a, b):
        found = _find_copied(b, a, common, at_least)
        return Copied(found.words, found.common_words, found.spans_b, found.spans_a, found.longest_run)
    runs, longest_run = _align(a, b)
    if not len(runs) or runs[:, 2].sum() < at_least:
        return Copied(0, 0, NO_SPANS, NO_SPANS, longest_run)
    return Copied(*count_copied(a, b, runs, common), longest_run)


def pair_shared_shingles(a: Hashes, b: Hashes) -> tuple[Places, Places]:
    """Word hashes (n,) and (m,), in reading order -> the words of shared shingles: places in a, ascending, and in b.

    They are what two texts share that are alike without a block, as a poem and its lines in another order.  A shingle's
    first occurrence in a is paired with its first in b, and so on; each word is in one pair at most.
    """
    if _is_exchanged(a, b):
        in_b, in_a = pair_shared_shingles(b, a)
        ascending = np.argsort(in_a)
        return in_a[ascending], in_b[ascending]
    place_in_b = {occurrence: place for place, occurrence in enumerate(_number_occurrences(hash_word_pairs(b)))}
    paired, words_of_b = dict[int, int](), set[int]()
    for at_a, occurrence in enumerate(_number_occurrences(hash_word_pairs(a))):
        at_b = place_in_b.get(occurrence)
        if at_b is not None:
            for word_a, word_b in ((at_a, at_b), (at_a + 1, at_b + 1)):
                if word_a not in paired and word_b not in words_of_b:
                    paired[word_a] = word_b
                    words_of_b.add(word_b)
    places = np.array(sorted(paired.items()), np.intp).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _number_occurrences(shingles: Hashes) -> Iterator[tuple[int, int]]:
    """Each shingle, and how often it occurred before."""
    before = Counter[int]()
    for shingle in shingles.tolist():
        yield shingle, before[shingle]
        before[shingle] += 1


def span_places(places: Places) -> Spans:
    """The spans of the words at these places, in any order."""
    found = _mask(int(places.max(initial=-1)) + 1, places)
    return np.flatnonzero(np.diff(found, prepend=False, append=False)).reshape(-1, 2).astype(np.int32)


def pair_places(at_a: Places, at_b: Places, spans_a: Spans, spans_b: Spans) -> PairedSpans:
    """Places (n,) and (n,) of words that are copies of each other -> the spans that they are in, in the order of a."""
    in_a, in_b = number_spans(at_a, spans_a), number_spans(at_b, spans_b)
    both = (in_a >= 0) & (in_b >= 0)
    found = find_distinct(in_a[both] * len(spans_b) + in_b[both])
    nth_a, nth_b = np.divmod(found, max(len(spans_b), 1))
    return np.concatenate((spans_a[nth_a], spans_b[nth_b]), axis=1)


def number_spans(places: Places, spans: Spans) -> Places:
    """The number of the span, ascending and disjoint, that each place is in; -1 for a place that is in none."""
    nth = np.searchsorted(spans[:, 0], places, side="right") - 1
    return np.where((nth >= 0) & (places < spans[nth, 1]), nth, -1) if len(spans) else np.full(len(places), -1)


@in_c(native.align)
def align(a: Hashes, b: Hashes) -> Blocks:
    """Word hashes (n,) and (m,), in reading order -> the runs of equal words that form the blocks.

    Blocks are numbered from 0; within a block, runs are in the order of both texts, and at most MAX_GAP words apart on
    either side.  A word is in one block at most.  `align(b, a)` is the same with sides exchanged.
    """
    return _align(b, a)[0][:, [1, 0, 2, 3]] if _is_exchanged(a, b) else _align(a, b)[0]


def _is_exchanged(a: Hashes, b: Hashes) -> bool:
    """Whether to take the two in the other order, so that the result does not depend on it.

    The shorter one comes second: its grams are indexed, and a small index is fast.
    """
    return b.tobytes() < a.tobytes() if len(a) == len(b) else len(a) < len(b)


def _align(a: Hashes, b: Hashes) -> tuple[Blocks, int | None]:
    """The runs of the blocks in the order of a, and the length of the longest run, None if that was not found."""
    if min(len(a), len(b)) < MIN_BLOCK:
        return np.empty((0, 4), np.int32), None
    shared, are_all = _find_shared_runs(a, b)
    longest_run = shared[0][2] if are_all and shared else None
    blocks = sorted(_Joiner(a, b).join_blocks(shared))
    runs = [(*run, number) for number, block in enumerate(blocks) for run in block]
    return np.array(runs, np.int32).reshape(-1, 4), longest_run


def _find_shared_runs(a: Hashes, b: Hashes) -> tuple[list[Run], bool]:
    """The maximal shared runs of GRAM words or more, the longest first; of equal length in the order of a, then of b.

    Also returned: whether these are all, which they are unless a gram has more than MAX_PAIRS pairs of places.
    """
    words_a, words_b = a.tolist(), b.tolist()
    grams_a, places_in_b = list(pack_grams(a)), defaultdict[bytes, list[int]](list)
    for place, gram in enumerate(pack_grams(b)):
        places_in_b[gram].append(place)
    pairs = {gram: times * len(places_in_b.get(gram, ())) for gram, times in Counter(grams_a).items()}
    runs, ranks = list[Run](), Counter[bytes]()
    reached = Counter[int]()  # by diagonal: where its last run ends in a
    for at_a, gram in enumerate(grams_a):
        others = places_in_b.get(gram, [])
        if pairs[gram] > MAX_PAIRS:
            others = others[ranks[gram] :][:1]
            ranks[gram] += 1
        for at_b in others:
            if reached[at_b - at_a] <= at_a:
                back, end = 0, GRAM
                while (
                    at_a - back > reached[at_b - at_a]
                    and at_b > back
                    and words_a[at_a - back - 1] == words_b[at_b - back - 1]
                ):
                    back += 1
                while words_a[at_a + end : at_a + end + 1] == words_b[at_b + end : at_b + end + 1] != []:
                    end += 1
                runs.append((at_a - back, at_b - back, back + end))
                reached[at_b - at_a] = at_a + end
    return sorted(runs, key=lambda run: -run[2]), max(pairs.values()) <= MAX_PAIRS


class _Joiner:
    """Joins runs to blocks.  A block grows over gaps of up to MAX_GAP words, and blocks share no word."""

    def __init__(self, a: Hashes, b: Hashes) -> None:
        self._a, self._b = a.tolist(), b.tolist()
        # The words that no block has: true for these, and by way of a last item false for places before and after.
        self._free_a, self._free_b = bytearray([1] * len(a) + [0]), bytearray([1] * len(b) + [0])

    def join_blocks(self, runs: list[Run]) -> Iterator[list[Run]]:
        """Runs, the longest first -> the blocks of MIN_BLOCK equal words or more, each as its runs in order.

        A block begins with the longest run that is left and grows at both ends.
        """
        for at_a, at_b, length in runs:
            offset = 0
            while offset < length:
                start_a, start_b = at_a + offset, at_b + offset
                words = self._count_equal(start_a, start_b, 1)
                if words >= GRAM:
                    before = list(self._grow_block(start_a - 1, start_b - 1, -1))
                    block = [*reversed(before), *self._grow_block(start_a, start_b, 1)]
                    if sum(run[2] for run in block) >= MIN_BLOCK:
                        self._take(block)
                        yield block
                offset += words + 1

    def _take(self, block: list[Run]) -> None:
        """Mark the words that a block reaches over as its own."""
        (first_a, first_b, _), (last_a, last_b, words) = block[0], block[-1]
        self._free_a[first_a : last_a + words] = bytes(last_a + words - first_a)
        self._free_b[first_b : last_b + words] = bytes(last_b + words - first_b)

    def _grow_block(self, at_a: int, at_b: int, way: int) -> Iterator[Run]:
        """The runs of a block from these words on: forwards (`way` 1), or backwards (`way` -1)."""
        words = self._count_equal(at_a, at_b, way)
        while True:
            if words:
                back = words - 1 if way < 0 else 0
                yield at_a - back, at_b - back, words
                at_a, at_b = at_a + way * words, at_b + way * words
            gap_a, gap_b, words = self._find_resumption(at_a, at_b, way)
            if not words:
                return
            at_a, at_b = at_a + way * gap_a, at_b + way * gap_b

    def _find_resumption(self, at_a: int, at_b: int, way: int) -> Run:
        """The shortest gap after which equal words go on: its words in a and in b, and those equal words (0: none)."""
        most_a, most_b = _count_free(self._free_a, at_a, way), _count_free(self._free_b, at_b, way)
        for gaps in range(1, most_a + most_b + 1):
            for gap_a in range(max(0, gaps - most_b), min(gaps, most_a) + 1):
                gap_b = gaps - gap_a
                words = self._count_equal(at_a + way * gap_a, at_b + way * gap_b, way)
                if words >= MIN_RESUMED:
                    return gap_a, gap_b, words
        return 0, 0, 0

    def _count_equal(self, at_a: int, at_b: int, way: int) -> int:
        """The number of equal words from these on that no block has."""
        words = 0
        while self._free_a[at_a] and self._free_b[at_b] and self._a[at_a] == self._b[at_b]:
            at_a, at_b, words = at_a + way, at_b + way, words + 1
        return words


def _count_free(free: bytearray, at: int, way: int) -> int:
    """The number of words, at most MAX_GAP, from this one on that no block has."""
    words = 0
    while words < MAX_GAP and free[at]:
        at, words = at + way, words + 1
    return words


def count_copied(a: Hashes, b: Hashes, runs: Blocks, common: PassageHashes) -> tuple[int, int, Spans, Spans]:
    """The runs of blocks in the order of a, one or more -> copied words, common words, spans of a, spans of b.

    These are as in `Copied`; the hashes of common passages ascend.
    """
    at_a, at_b, blocks = expand_runs(runs)
    in_a, in_b = _span_blocks(runs, 0), _span_blocks(runs, 1)
    common_a, common_b = _mask_common_in_spans(a, in_a, common), _mask_common_in_spans(b, in_b, common)
    is_common = common_a[at_a] | common_b[at_b]
    common_a[at_a] = common_b[at_b] = is_common
    copied = np.count_nonzero(_mask_first_occurrences(a[at_a], blocks) & ~is_common)
    copied_a, copied_b = _mask(len(a), at_a[~is_common]), _mask(len(b), at_b[~is_common])
    spans_a, spans_b = cut_out_common(in_a, common_a, copied_a), cut_out_common(in_b, common_b, copied_b)
    return int(copied), int(np.count_nonzero(is_common)), spans_a, spans_b


def expand_runs(runs: Blocks) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The place in a, the place in b and the block of each equal word, in the order of the runs."""
    words = runs[:, 2]
    return concatenate_ranges(runs[:, 0], words), concatenate_ranges(runs[:, 1], words), np.repeat(runs[:, 3], words)


def pack_grams(words: Hashes) -> Iterator[bytes]:
    """(n,) word hashes -> the GRAM words that begin at each place, as bytes."""
    packed, size = words.tobytes(), words.itemsize
    return (packed[at : at + GRAM * size] for at in range(0, len(packed) - (GRAM - 1) * size, size))


@in_c(native.sample_passages)
def sample_passages(words: Hashes) -> PassageHashes:
    """Word hashes (n,), in reading order -> (m,) the passage hashes of the sampled grams, in that order."""
    return sample_grams(words)[0]


def mask_common(words: Hashes, common: PassageHashes) -> Mask:
    """Which words (n,) of a text stand in common passages, whose hashes ascend.

    Samples are some words apart, so a common passage reaches from one of its samples to the next, and from the first
    and the last sample of the text to the text's ends.
    """
    found = np.zeros(len(words), bool)
    if len(words) < GRAM:
        return found
    hashes, places = sample_grams(words)
    stretches = np.flatnonzero(np.diff(are_among_ascending(hashes, common), prepend=False, append=False))
    for first, end in stretches.reshape(-1, 2).tolist():
        start = places[first] if first else 0
        found[start : places[end - 1] + GRAM if end < len(places) else len(words)] = True
    return found


def hash_own_pairs(words: Hashes, common: PassageHashes) -> Hashes:
    """Word hashes (n,) -> (m,) the hashes of the pairs of adjacent words that are apart from common passages."""
    is_own = are_own(words, common)
    return hash_word_pairs(words)[is_own[:-1] & is_own[1:]]


@in_c(native.are_own)
def are_own(words: Hashes, common: PassageHashes) -> Mask:
    """Which words (n,) of a text are apart from common passages, whose hashes ascend.

    Words up to a window from a common passage may belong to it, so they do not count.
    """
    places, never = np.arange(len(words)), len(words) + WINDOW  # farther than a window from every word
    is_common = mask_common(words, common)
    before = np.maximum.accumulate(np.where(is_common, places, -never))
    after = np.minimum.accumulate(np.where(is_common, places, never)[::-1])[::-1]
    return np.asarray((places - before > WINDOW) & (after - places > WINDOW))


def _mask_common_in_spans(words: Hashes, spans: Spans, common: PassageHashes) -> Mask:
    """Which words (n,) of a text stand within the spans, each as if it were a text, and in common passages."""
    found = np.zeros(len(words), bool)
    for start, end in spans.tolist():
        found[start:end] = mask_common(words[start:end], common)
    return found


def _span_blocks(runs: Blocks, side: int) -> Spans:
    """The words of a text that each block reaches over, ascending."""
    first = np.flatnonzero(np.diff(runs[:, 3], prepend=-1))
    last = np.append(first[1:], len(runs)) - 1
    spans = np.stack((runs[first, side], runs[last, side] + runs[last, 2]), axis=1)
    return spans[np.argsort(spans[:, 0])]


def _mask_first_occurrences(words: Hashes, blocks: npt.NDArray[np.intp]) -> Mask:
    """Which of the equal words, of these blocks, stand in a gram of their block that did not occur before, and in none
    that did.

    So a refrain, or the options of a quiz, count once, whatever word stands before and after them.
    """
    first, repeated, before = np.zeros(len(words), bool), np.zeros(len(words), bool), set[bytes]()
    in_one_block = blocks[GRAM - 1 :] == blocks[: 1 - GRAM]
    for place, gram in enumerate(pack_grams(words)):
        if in_one_block[place]:
            (repeated if gram in before else first)[place : place + GRAM] = True
            before.add(gram)
    return first & ~repeated


def _mask(words: int, places: Places) -> Mask:
    """Which words (words,) of a text are at these places."""
    found = np.zeros(words, bool)
    found[places] = True
    return found


def cut_out_common(spans: Spans, common: Mask, copied: Mask) -> Spans:
    """The parts of the spans, ascending, between common words, each from its first copied word to its last.

    So an edit of a common passage is no part copied, either.
    """
    kept = [NO_SPANS]
    for start, end in spans.tolist():
        edges = start + np.flatnonzero(np.diff(common[start:end], prepend=True, append=True))
        for first, last in edges.reshape(-1, 2).tolist():
            places = first + np.flatnonzero(copied[first:last])
            if len(places):
                kept.append(np.array([[places[0], places[-1] + 1]], np.int32))
    return np.concatenate(kept)


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
    pairs_a, pairs_b = map(hash_word_pairs, (a, b))
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
