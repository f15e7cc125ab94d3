"""Sets of numbers as ascending arrays.

np.unique and np.union1d put integers into a hash table before they sort them, which takes 2,000 hashes 17 times as
long as sorting alone (numpy 2.4), and their first call imports numpy.ma, which takes 20 ms of a command's start.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def find_distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(n,) numbers -> the distinct ones, ascending."""
    ascending = np.sort(numbers)
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return np.asarray(ascending[is_first])


def union(left: npt.NDArray[Number], right: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """(n,) and (m,) numbers -> those of either, distinct and ascending."""
    return find_distinct(np.concatenate((left, right)))
