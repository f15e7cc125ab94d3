"""Finds the stories that have passage hashes by reading every segment from end to end, without looking anything up."""

from collections.abc import Iterator

import numpy as np

from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import HASH_SHIFT, Keys, PassageHashes
from neardup.index.passages.segment import Segment
from neardup.index.passages.stripes import stripes

LISTINGS = 3  # a segment may be merged between the listing of the folder and its opening


def scan(passages: PassageIndex, wanted: PassageHashes) -> Iterator[Keys]:
    """The postings of some distinct ascending hashes in the segments.  Raises PassagesDamaged."""
    first = wanted.astype(np.uint64) << HASH_SHIFT
    for segment in _segments(passages):
        for _, keys in stripes([segment]):
            starts = np.searchsorted(keys, first)
            counts = np.searchsorted(keys, first + np.uint64((1 << 32) - 1), side="right") - starts
            places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            yield keys[places]


def _segments(passages: PassageIndex) -> list[Segment]:
    for _ in range(LISTINGS - 1):
        try:
            return [Segment(path) for path in passages.files()]
        except FileNotFoundError:
            continue
    return [Segment(path) for path in passages.files()]
