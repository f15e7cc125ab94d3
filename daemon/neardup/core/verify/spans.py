"""Spans of copied words; the share of a text that they are; the similarity of a pair, which follows from the shares.

Spans are (n, 2) int32: [start, end) in the words of a text.

The share of a story that stands in another, and in all its sources together, is that of the words of its spans: the
passages with the edits inside them, without common passages.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.core.verify.tiers import find_tier
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
