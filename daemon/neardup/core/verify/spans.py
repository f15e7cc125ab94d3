"""Spans of copied words: where they stand in two texts, what share of a text they are, and how similar a pair is.

Spans are (n, 2) int32: [start, end) in the words of a text.  An assessment has those of either text, which are paired
here, and cut into the runs of equal words between which the edits lie; both follow from the alignment.

The share of a story that stands in another, and in all its sources together, is that of the words of its spans: the
passages with the edits inside them, without common passages.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.core.fingerprint.common_words import are_rare
from neardup.core.fingerprint.word_hashes import Places
from neardup.core.verify import skeletons
from neardup.core.verify.alignment import (
    PairedSpans,
    align,
    expand_runs,
    number_spans,
    pair_places,
    pair_shared_shingles,
)
from neardup.core.verify.rewriting import list_equal_words
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import LANGUAGES, RARE_SHARE, find_tier
from neardup.records import Assessment, Kind, Spans

BITS = 128  # of a SimHash


class CopiedInAll(NamedTuple):
    """How much of a story stands in all its sources together.

    `top_source` is the id of the one with the largest share; `kinds` are those of all, the most severe first.
    """

    copied_words: int
    similarity: float
    sources: int
    top_source: int
    top_share: float
    kinds: str


def sum_up_copied(words: int, sources: Sequence[tuple[int, Kind, Spans]]) -> CopiedInAll | None:
    """How much of a story of so many words stands in its sources; None where none of its words is copied.

    Each source is given by its id, the kind of the flag, and the copied spans of the story.
    """
    copied_of = {source_id: copied for source_id, _, spans in sources if (copied := count_words(spans))}
    if not copied_of:
        return None
    copied = count_words(np.concatenate([spans for *_, spans in sources]))
    top = min(copied_of, key=lambda source_id: (-copied_of[source_id], source_id))
    kinds = sorted(
        {kind for source_id, kind, _ in sources if source_id in copied_of}, key=lambda kind: find_tier(kind).severity
    )
    shares = measure_share(copied, words), measure_share(copied_of[top], words)
    return CopiedInAll(copied, shares[0], len(copied_of), top, shares[1], ", ".join(kinds))


def measure_share(copied: int, words: int) -> float:
    """The share of copied words, from 0 to 1."""
    return min(copied / words, 1.0) if words else 0.0


def measure_similarity(found: Assessment, words_a: int, words_b: int) -> float:
    """The similarity of a pair of texts with so many words, 0 to 1: the larger share of either that is copied.

    Where a text is missing, it is estimated: the larger containment, or the share of equal bits of the SimHashes.
    """
    signals = found.signals
    if signals.jaccard is None:
        return 1 - signals.hamming / BITS
    if signals.estimated:
        return signals.containment
    return max(measure_share(count_words(found.spans_a), words_a), measure_share(count_words(found.spans_b), words_b))


def count_words(spans: Spans) -> int:
    """The number of words in (n, 2) spans; a word in several of them counts once."""
    words, reach = 0, 0
    for start, end in sorted(spans.tolist()):  # few, so that numpy would take longer
        words += max(end - max(start, reach), 0)
        reach = max(reach, end)
    return words


def union_of_spans(spans: Spans) -> Spans:
    """(n, 2) spans in any order -> (m, 2) the same words in spans that neither overlap nor touch, ascending."""
    if not len(spans):
        return spans
    ascending = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ascending[:, 1])
    opens = np.concatenate(([True], ascending[1:, 0] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return np.stack((ascending[opens, 0], reach[closes]), axis=1)


def pair_spans(a: Text | None, b: Text | None, found: Assessment) -> PairedSpans:
    """The spans that an assessment of two texts found -> which of them are copies of each other, in the order of a.

    A text may be None if both are the same, or if one was missing, so that there are no spans.  Each span has
    a partner, and may have two, which touch or lie beside a common passage.
    """
    if a is None or b is None or found.signals.same_text or RARE_SHARE in found.signals.extra:
        return np.concatenate((found.spans_a, found.spans_b), axis=1)
    if LANGUAGES in found.signals.extra:
        return skeletons.pair_spans(a.skeleton, b.skeleton, found.spans_a, found.spans_b)
    return pair_places(*_align_words(a, b), found.spans_a, found.spans_b)


def find_runs(a: Text, b: Text, found: Assessment) -> PairedSpans:
    """The runs of equal words in the spans that an assessment found: words of a, and the words of b, in the order of a.

    Skeletons are equal where words are not, so their spans are runs as a whole, and may differ in length; each span is
    in one run at most.
    """
    if found.signals.same_text or LANGUAGES in found.signals.extra:
        return _keep_first_of_span(pair_spans(a, b, found))
    is_rewritten = RARE_SHARE in found.signals.extra
    at_a, at_b = list_equal_words(a, b, found.spans_a, found.spans_b) if is_rewritten else _align_words(a, b)
    spans = number_spans(at_a, found.spans_a), number_spans(at_b, found.spans_b)
    words = np.stack((at_a, at_b, *spans))[:, (spans[0] >= 0) & (spans[1] >= 0)]
    goes_on = (np.diff(words) == [[1], [1], [0], [0]]).all(axis=0)
    begins, ends = np.append(True, ~goes_on)[: words.shape[1]], np.append(~goes_on, True)[: words.shape[1]]
    runs = np.stack((words[0, begins], words[0, ends] + 1, words[1, begins], words[1, ends] + 1), axis=1)
    return runs[np.argsort(runs[:, 0])].astype(np.int32)


def find_rare_words(a: Text, b: Text, found: Assessment) -> Places:
    """The places in a, ascending, of the distinct rare words that make one text the other rewritten.

    None for another kind.
    """
    if RARE_SHARE not in found.signals.extra:
        return np.empty(0, np.intp)
    at_a, _ = list_equal_words(a, b, found.spans_a, found.spans_b)
    rare = at_a[are_rare(a.word_hashes[at_a])]
    return np.sort(rare[np.unique(a.word_hashes[rare], return_index=True)[1]])


def _keep_first_of_span(pairs: PairedSpans) -> PairedSpans:
    """The pairs, of those with the same span on a side only the first."""
    kept, starts = list[list[int]](), set[int]()
    for pair in pairs.tolist():
        if not starts & {pair[0], ~pair[2]}:
            starts |= {pair[0], ~pair[2]}
            kept.append(pair)
    return np.array(kept, np.int32).reshape(-1, 4)


def _align_words(a: Text, b: Text) -> tuple[Places, Places]:
    """The place in a and the place in b of each equal word of the aligned blocks, or else of the shared shingles."""
    at_a, at_b, _ = expand_runs(align(a.word_hashes, b.word_hashes))
    return (at_a, at_b) if len(at_a) else pair_shared_shingles(a.word_hashes, b.word_hashes)
