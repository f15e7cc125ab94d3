"""Spans of copied words, (n, 2) int32: [start, end) in the words of a text, and the share of the text that they are.

The share of a story that stands in another, and in all its sources together, is that of the words of its spans: the
passages with the edits inside them, without common passages.
"""

import numpy as np

from neardup.records import Spans


def share_of(copied: int, words: int) -> float:
    """The share of copied words, from 0 to 1."""
    return min(copied / words, 1.0) if words else 0.0


def words_in(spans: Spans) -> int:
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
