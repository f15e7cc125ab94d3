"""Regroups postings by story: a segment has them by hash.

One pass over the sorted postings distributes them to scratch files, 8 bytes a posting, each for a range of story
numbers; then the files are sorted in memory, one after the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neardup.core.candidates.banding import Numbers
from neardup.index.passages.postings import Keys, Offsets, PassageHashes, hashes_of, numbers_of

RANGE = 1 << 18  # story numbers a file: at 60 hashes a story, 126 MB of postings


@dataclass(frozen=True, slots=True)
class HashesByStory:
    """The postings of the stories with the numbers [first, last], by number, and by hash for each."""

    first: int
    last: int
    numbers: Numbers
    hashes: PassageHashes

    def of(self, numbers: Numbers) -> tuple[Offsets, PassageHashes]:
        """The hashes of ascending numbers (n,), one number after the other, and where they start (n + 1,)."""
        starts = np.searchsorted(self.numbers, numbers, side="left")
        counts = np.searchsorted(self.numbers, numbers, side="right") - starts
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        places = np.repeat(starts - ends[:-1], counts) + np.arange(ends[-1])
        return ends.astype(np.uint32), self.hashes[places]


def hashes_by_story(stripes: Iterable[tuple[range, Keys]], last: int, scratch: Path) -> Iterator[HashesByStory]:
    """Regroup the postings of `stripes`, whose numbers are at most `last`, a range of numbers at a time, ascending.

    Writes files into the folder `scratch`; raises OSError.
    """
    for _, keys in stripes:
        _distribute(keys, scratch)
    for first in range(0, last + 1, RANGE):
        path = scratch / f"{first // RANGE}"
        keys = np.fromfile(path, np.uint64) if path.exists() else np.empty(0, np.uint64)
        path.unlink(missing_ok=True)
        numbers = numbers_of(keys)
        order = np.argsort(numbers, kind="stable")  # the postings came by hash
        yield HashesByStory(first, min(first + RANGE - 1, last), numbers[order], hashes_of(keys)[order])


def _distribute(keys: Keys, scratch: Path) -> None:
    ranges = numbers_of(keys) // np.uint32(RANGE)
    keys = keys[np.argsort(ranges, kind="stable")]
    counts = np.bincount(ranges)
    ends = np.cumsum(counts)
    for n in np.flatnonzero(counts).tolist():
        with (scratch / f"{n}").open("ab") as file:
            keys[ends[n] - counts[n] : ends[n]].tofile(file)
