"""Values that more stories have than a story is compared with: only keys made of such can be cut.

A pair that is equal in other values too belongs to a key that is never cut.  Of one that is equal in hot
values only `Cuts` tells which key is the first to compare it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled

Positions = npt.NDArray[np.int64]
Columns = npt.NDArray[np.unsignedinteger]  # (n, c): of each story the values of its bands
Hot = npt.NDArray[np.uint32]  # (n,): bit c is set where a story's value in column c is hot

PART_VALUES = 1 << 16
UNBOUNDED = 1 << 62


class Cuts(NamedTuple):
    """Groups of equal keys that were too long, ascending (see `group_of`), and each one's first position cut off."""

    groups: npt.NDArray[np.uint64]
    bounds: Positions

    @classmethod
    def none(cls) -> Self:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    def and_more(self, groups: Sequence[int], bounds: Sequence[int]) -> Self:
        """These and others."""
        all_groups = np.append(self.groups, np.array(groups, np.uint64))
        order = np.argsort(all_groups, kind="stable")
        return type(self)(all_groups[order], np.append(self.bounds, bounds)[order])


def hot_values(columns: Columns, positions: Positions, most: int) -> Hot:
    """Which values more than `most` of the stories at these positions have; the other stories count for nothing."""
    hot = np.zeros(len(columns), np.uint32)
    for column in range(columns.shape[1]):
        some = _with_a_hot_part(columns, positions, column, most)
        _, whose, sizes = np.unique(columns[some, column], return_inverse=True, return_counts=True)
        hot[some[sizes[whose] > most]] |= np.uint32(1 << column)
    return hot


@compiled
def _with_a_hot_part(columns: Columns, positions: Positions, column: int, most: int) -> Positions:
    """The stories of whose value in a column more than `most` have the last 16 bits."""
    sizes = np.zeros(PART_VALUES, np.int64)
    for position in positions:
        sizes[columns[position, column] & (PART_VALUES - 1)] += 1
    kept = 0
    if sizes.max() > most:
        found = np.empty(len(positions), np.int64)
        for position in positions:
            found[kept] = position
            kept += sizes[columns[position, column] & (PART_VALUES - 1)] > most
        return found[:kept]
    return positions[:0]


@compiled
def bound(columns: Columns, story: int, one: int, other: int, cuts: Cuts) -> int:
    """The first position cut off of a story's group in two columns, one < other, or in one, given twice."""
    group = group_of(columns, story, one, other)
    place = np.searchsorted(cuts.groups, group)
    return cuts.bounds[place] if place < len(cuts.groups) and cuts.groups[place] == group else UNBOUNDED


@compiled
def group_of(columns: Columns, story: int, one: int, other: int) -> np.uint64:
    """The number of those that are equal to a story in two columns of 16 bits, or in one of 32 bits at most."""
    value = np.uint64(columns[story, other])
    if one != other:
        value |= np.uint64(columns[story, one]) << np.uint64(16)
    return np.uint64(one << 5 | other) << np.uint64(32) | value
