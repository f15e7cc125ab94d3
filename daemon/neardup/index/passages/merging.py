"""Which segments are merged, and when.

Each segment costs a lookup a read for each hash, and a merge writes its segments again.  The oldest segment is merged
with all the newer ones when together they have a quarter of its size: so nearly all postings are in one segment, and
a posting is written five times while the index grows.  Until then the newer ones are merged among themselves, when
they are FAN_IN, by the same rule.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.index.passages.folder import SegmentFile
from neardup.index.passages.postings import Keys, numbers_of

GROWTH = 4
FAN_IN = 8
MAX_POSTINGS = 1 << 32  # of a segment; its directory has offsets of 32 bits
NUMBERS_A_CALL = 1 << 20

IsLive = Callable[[Numbers], npt.NDArray[np.bool_]]


def due(segments: Sequence[SegmentFile]) -> Sequence[SegmentFile]:
    """The segments to merge next, in ascending order; none if no merge is due.

    Only segments without a gap between their ranges are merged, because a merged segment holds one range.  A damaged
    segment is not merged.
    """
    for group in _adjacent(segments):
        sizes = [one.usable().header.file_bytes for one in group]
        postings = [one.usable().header.postings for one in group]
        for n, size in enumerate(sizes[:-1]):
            large_enough = GROWTH * sum(sizes[n + 1 :]) >= size
            if large_enough and (n == 0 or len(group) - n >= FAN_IN) and sum(postings[n:]) < MAX_POSTINGS:
                return group[n:]
    return []


def _adjacent(segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
    group: list[SegmentFile] = []
    for one in segments:
        if group and (one.segment is None or group[-1].last + 1 != one.first):
            yield group
            group = []
        if one.segment is not None:
            group.append(one)
    yield group


class LiveNumbers:
    """Which of the numbers `first` to `last` are of current stories; the others' postings are dropped."""

    def __init__(self, first: int, last: int, is_live: IsLive) -> None:
        self._first = first
        parts = [
            is_live(np.arange(start, min(start + NUMBERS_A_CALL, last + 1), dtype=np.uint32))
            for start in range(first, last + 1, NUMBERS_A_CALL)
        ]
        self._live = np.concatenate([np.empty(0, np.bool_), *parts])

    def keys(self, keys: Keys) -> Keys:
        """The keys of current stories, in the same order."""
        return np.asarray(keys[self._live[numbers_of(keys) - np.uint32(self._first)]])
