"""Sets of numbers as ascending arrays: their groups, which elements of one are in another, and how many two share.

np.unique and np.union1d put integers into a hash table before they sort them, which takes 2,000 hashes 17 times as
long as sorting alone (numpy 2.4), and their first call imports numpy.ma, which takes 20 ms of a command's start.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.native import comparison as native
from neardup.core.native import in_c

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
# (m, 3): the places of two of n sets or texts, and how many equal words `alignment.find_copied_of_pairs` asks for.
Pairs = npt.NDArray[np.int32]
Number = TypeVar("Number", bound=np.generic)

ONE_PAIR: Pairs = np.array([[0, 1, 0]], np.int32)


def find_distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(n,) numbers -> the distinct ones, ascending."""
    ascending = np.sort(numbers)
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return np.asarray(ascending[is_first])


def find_edges(*columns: npt.NDArray[np.generic]) -> Counts:
    """Columns (n,) that rows are sorted by -> where each group of equal rows begins, and n."""
    begins = np.zeros(len(columns[0]), np.bool_)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(begins), len(begins))


def rank_in_groups(edges: Counts) -> Counts:
    """The edges of the groups of n rows -> (n,) the place of each row in its group, from 0."""
    return np.arange(edges[-1]) - np.repeat(edges[:-1], np.diff(edges))


def concatenate_ranges(starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]) -> Counts:
    """The ranges that begin at `starts` and have `counts` numbers, one after another."""
    firsts: Counts = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return firsts + np.arange(len(firsts))


def union(left: npt.NDArray[Number], right: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(n,) and (m,) numbers -> those of either, distinct and ascending."""
    return find_distinct(np.concatenate((left, right)))


def are_among(these: npt.NDArray[Number], those: npt.NDArray[Number]) -> npt.NDArray[np.bool_]:
    """Which of `these` are among `those`."""
    return are_among_ascending(these, np.sort(those))


def are_among_ascending(these: npt.NDArray[Number], those: npt.NDArray[Number]) -> npt.NDArray[np.bool_]:
    """Which of `these` are among `those`, which ascend."""
    if not len(those):
        return np.zeros(len(these), bool)
    return np.asarray(those[np.minimum(np.searchsorted(those, these), len(those) - 1)] == these)


def count_shared(a: Hashes, b: Hashes) -> int:
    """How many hashes two sets share: those of each ascend and are distinct."""
    return int(count_shared_of_pairs((a, b), ONE_PAIR)[0])


@in_c(native.count_shared_of_pairs)
def count_shared_of_pairs(sets: Sequence[Hashes], pairs: Pairs) -> Counts:
    """How many hashes the sets of each pair (m,) share: those of each ascend and are distinct.

    The native function merges the sets or, as the reference does, searches the larger one for each hash of the smaller.
    """
    few_and_many = (sorted((sets[a], sets[b]), key=len) for a, b, _ in pairs.tolist())
    return np.array([np.count_nonzero(are_among_ascending(*both)) for both in few_and_many], np.int64)


@in_c(native.count_uncommon_of_pairs)
def count_uncommon_of_pairs(sets: Sequence[Numbers], pairs: Pairs, common: Numbers) -> Counts:
    """How many numbers the sets of each pair (m,) share, apart from common ones: all ascend and are distinct."""
    shared = (sets[a][are_among_ascending(sets[a], sets[b])] for a, b, _ in pairs.tolist())
    return np.array([np.count_nonzero(~are_among_ascending(numbers, common)) for numbers in shared], np.int64)
