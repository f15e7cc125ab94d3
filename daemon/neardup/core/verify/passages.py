"""Where the copied words of one text stand in the other: what an assessment found, with positions on both sides.

An assessment has the spans of either text.  Here they are paired, and cut into the runs of equal words between which
the edits lie; both follow from the alignment that the spans are made of.
"""

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
from neardup.core.verify.tiers import LANGUAGES, RARE_SHARE
from neardup.records import Assessment


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
