"""Ranges of story numbers: inclusive, ascending and disjoint."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Range = tuple[int, int]
Ranges = Sequence[Range]


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Disjoint ranges in ascending order, adjacent ones as one."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and found[-1][1] + 1 == first:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def overlaps(ranges: Ranges, first: int, last: int) -> bool:
    """Whether `first` to `last` has a number in one of the ranges."""
    return any(start <= last and first <= stop for start, stop in ranges)


def held_mask(ranges: Ranges, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """For each number (n,) whether it is in one of the ranges."""
    if not ranges:
        return np.zeros(len(numbers), np.bool_)
    firsts, lasts = np.array(ranges, np.int64).T
    at = np.searchsorted(firsts, numbers, side="right") - 1
    return np.asarray((at >= 0) & (numbers <= lasts[at]))
