"""Sets of hashes: which of one are in another."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.native import in_c
from neardup.core.native import sets as native

Numbers = npt.NDArray[np.uint32]
Number = TypeVar("Number", np.uint32, np.uint64)
NO_NUMBERS: Numbers = np.empty(0, np.uint32)


def among(these: Hashes, those: Hashes) -> npt.NDArray[np.bool_]:
    """Which of `these` are among `those`."""
    return among_ascending(these, np.sort(those))


def among_ascending(these: npt.NDArray[Number], those: npt.NDArray[Number]) -> npt.NDArray[np.bool_]:
    """Which of `these` are among `those`, which ascend."""
    if not len(those):
        return np.zeros(len(these), bool)
    return np.asarray(those[np.minimum(np.searchsorted(those, these), len(those) - 1)] == these)


@in_c(native.count_shared)
def count_shared(few: Hashes, many: Hashes) -> int:
    """How many hashes two sets share: those of each ascend and are distinct.  Fast if `few` are the fewer ones.

    The native function merges the sets or, as the reference does, searches for each of the few.
    """
    return int(np.count_nonzero(among_ascending(few, many)))


@in_c(native.count_shared_apart)
def count_shared_apart(a: Numbers, b: Numbers, apart: Numbers) -> int:
    """How many numbers two sets share that a third one does not have: those of each ascend and are distinct."""
    few, many = sorted((a, b), key=len)
    return int(np.count_nonzero(~among_ascending(few[among_ascending(few, many)], apart)))
