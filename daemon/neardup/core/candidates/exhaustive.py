"""Compares a few stories with all others by their fingerprints, without buckets and without the limits of nomination.

Signatures of unrelated stories agree in 6 of 64 rows once in 4 million pairs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.candidates.screen import Arrays, columns_of
from neardup.core.native import candidates as native
from neardup.core.native import in_c
from neardup.core.verify.scores import hamming

ROWS = 6  # that the signatures of a pair agree in, at least

Indices = npt.NDArray[np.int64]


class Alike(NamedTuple):
    """Pairs of one of some stories and another story: their positions, and the rows in which they agree."""

    ones: Indices
    others: Indices
    rows: Indices


def compare(ones: FingerprintArrays, others: FingerprintArrays, most_bits: int) -> Alike:
    """The pairs within the Hamming distance `most_bits`, or whose signatures agree in ROWS rows.

    All stories are of one language.
    """
    return Alike(*close_pairs(columns_of(ones), columns_of(others), most_bits, ROWS))


@in_c(native.close_pairs)
def close_pairs(ones: Arrays, others: Arrays, most_bits: int, least_rows: int) -> tuple[Indices, Indices, Indices]:
    """The pairs within the Hamming distance, or that agree in enough rows, by the second one: both, and these rows."""
    found = [np.zeros((3, 0), np.int64)]
    for other in range(len(others[0])):
        rows = (ones[2] == others[2][other]).sum(axis=1) * (ones[3] & others[3][other])
        near = np.flatnonzero((rows >= least_rows) | (hamming(ones[1], others[1][other]) <= most_bits))
        found.append(np.stack((near, np.full(len(near), other), rows[near])))
    left, right, rows = np.concatenate(found, axis=1)
    return left, right, rows
