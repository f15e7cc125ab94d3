"""Story numbers that occur in several of the buckets of a lookup: the inner loop of every lookup."""

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.native import candidates as native
from neardup.core.native import in_c

Indices = npt.NDArray[np.int64]


@in_c(native.shared_by)
def shared_by(members: Numbers, edges: Indices, lookups: Indices, least: int) -> tuple[Numbers, Indices]:
    """For each of n lookups, the numbers that occur in at least `least` of its buckets.

    Bucket b is members[edges[b]:edges[b + 1]]; `lookups` (n, k) are the buckets of each lookup.  The numbers found by
    lookup i are found[ends[i]:ends[i + 1]], ascending, for the returned `found` and `ends` (n + 1,).
    """
    found, ends = [np.empty(0, np.uint32)], np.zeros(len(lookups) + 1, np.int64)
    for lookup, buckets in enumerate(lookups.tolist()):
        gathered = [members[edges[bucket] : edges[bucket + 1]] for bucket in buckets]
        numbers, counts = np.unique(np.concatenate([*gathered, members[:0]]), return_counts=True)
        found.append(numbers[counts >= least])
        ends[lookup + 1] = ends[lookup] + len(found[-1])
    return np.concatenate(found), ends
