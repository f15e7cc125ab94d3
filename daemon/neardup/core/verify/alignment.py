"""The alignment of two texts: the passages that one copied from the other, edited ones included.

Seed and extend, as in sequence alignment (Altschul et al., "Basic local alignment search tool", J. Mol. Biol. 1990):
the shared runs of words are the seeds, and a block grows from the longest run that is left over gaps of a few words.
Blocks of fewer than MIN_BLOCK equal words do not count, so unrelated texts have nothing in common.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.passage_hashes import PassageHashes, Places
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.pairs import NO_SPANS, Spans

# equal words; one pair in a thousand of unrelated stories has a block of 12 to 19, one in 300 one of 8 to 19
MIN_BLOCK = 12

Blocks = npt.NDArray[np.int32]  # (n, 4): place in a, place in b, number of words and number of the block of each run
Mask = npt.NDArray[np.bool_]  # (words,)
PairedSpans = npt.NDArray[np.int32]  # (n, 4): words [start, end) of a, and the words [start, end) of b that copy them

NO_HASHES: PassageHashes = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Copied:
    """What two texts share.

    - `words`: the equal words of all blocks, without repetitions: where a text repeats a passage, it counts once.
    - `common_words`: the equal words that were left out because they stand in a common passage.
    - `spans_a`, `spans_b`: the blocks in either text with the edits inside them, without common passages.
    - `longest_run`: the words of the longest run that both share; None if the alignment did not find it.
    """

    words: int
    common_words: int
    spans_a: Spans
    spans_b: Spans
    longest_run: int | None


def copied(a: Hashes, b: Hashes, common: PassageHashes = NO_HASHES, at_least: int = 0) -> Copied:
    """Word hashes (n,) and (m,), in reading order -> what they share.

    `common` are the hashes of common passages, ascending.  Texts whose blocks have fewer than `at_least` equal words
    share nothing.  `copied(b, a)` is the same with sides exchanged.
    """
    if _exchanged(a, b):
        other = copied(b, a, common, at_least)
        return replace(other, spans_a=other.spans_b, spans_b=other.spans_a)
    runs, longest_run = _aligned(a, b)
    if not len(runs) or runs[:, 2].sum() < at_least:
        return Copied(0, 0, NO_SPANS, NO_SPANS, longest_run)
    # loads the compiler, which most commands do not need
    from neardup.core.verify.copied_kernel import count_copied  # noqa: PLC0415

    return Copied(*count_copied((a, b), runs, common), longest_run)


def paired(a: Hashes, b: Hashes, spans_a: Spans, spans_b: Spans) -> PairedSpans:
    """The spans that `copied(a, b)` found -> which of them are copies of each other, in the order of a.

    A span without equal words, which lies between common passages, has no partner.
    """
    at_a, at_b, _ = _each_word(aligned(a, b))
    return partners(at_a, at_b, spans_a, spans_b)


def partners(at_a: Places, at_b: Places, spans_a: Spans, spans_b: Spans) -> PairedSpans:
    """Places (n,) and (n,) of words that are copies of each other -> the spans that they are in, in the order of a."""
    in_a, in_b = _span_of(at_a, spans_a), _span_of(at_b, spans_b)
    both = (in_a >= 0) & (in_b >= 0)
    found = np.unique(in_a[both] * len(spans_b) + in_b[both])
    nth_a, nth_b = np.divmod(found, max(len(spans_b), 1))
    return np.concatenate((spans_a[nth_a], spans_b[nth_b]), axis=1)


def _span_of(places: Places, spans: Spans) -> Places:
    """The number of the span, ascending and disjoint, that each place is in; -1 for a place that is in none."""
    nth = np.searchsorted(spans[:, 0], places, side="right") - 1
    return np.where((nth >= 0) & (places < spans[nth, 1]), nth, -1) if len(spans) else np.full(len(places), -1)


def aligned(a: Hashes, b: Hashes) -> Blocks:
    """Word hashes (n,) and (m,), in reading order -> the runs of equal words that form the blocks.

    Blocks are numbered from 0; within a block, runs are in the order of both texts, and at most MAX_GAP words apart on
    either side.  A word is in one block at most.  `aligned(b, a)` is the same with sides exchanged.
    """
    return _aligned(b, a)[0][:, [1, 0, 2, 3]] if _exchanged(a, b) else _aligned(a, b)[0]


def _aligned(a: Hashes, b: Hashes) -> tuple[Blocks, int | None]:
    """The runs of the blocks in the order of a, and the length of the longest run, None if that was not found."""
    if min(len(a), len(b)) < MIN_BLOCK:
        return np.empty((0, 4), np.int32), None
    # loads the compiler, which most commands do not need
    from neardup.core.verify.alignment_kernel import joined, shared_runs  # noqa: PLC0415

    shared, are_all = shared_runs((a, b))
    longest_run = int(shared[0, 2]) if are_all and len(shared) else None
    return joined((a, b), shared, MIN_BLOCK), longest_run


def _exchanged(a: Hashes, b: Hashes) -> bool:
    """Whether to take the two in the other order, so that the result does not depend on it.

    The shorter one comes second: its grams are indexed, and a small index is fast.
    """
    return b.tobytes() < a.tobytes() if len(a) == len(b) else len(a) < len(b)


def _each_word(runs: Blocks) -> tuple[Places, Places, Places]:
    """The place in a, the place in b and the block of each equal word."""
    words = runs[:, 2]
    nth = np.arange(words.sum()) - np.repeat(np.cumsum(words) - words, words)
    return np.repeat(runs[:, 0], words) + nth, np.repeat(runs[:, 1], words) + nth, np.repeat(runs[:, 3], words)
