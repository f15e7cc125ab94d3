"""Pairs of stories that share passage hashes, each pair at one hash: the first that it shares.

The counterpart of `key_pairs` for passages.  Each story brings the list of its hashes that others hold, too, so that a
bucket's pairs can be counted without the other buckets.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.screen import Arrays, Thresholds, score_pair
from neardup.core.fingerprint.passage_hashes import MIN_SHARED
from neardup.core.jit import compiled

Indices = npt.NDArray[np.int64]


class HashBuckets(NamedTuple):
    """Stories (n,) sorted by a passage hash and then by id, cut into buckets of the stories that hold it.

    Bucket b is the rows from edges[b] to edges[b + 1], of the hash hashes[b].  The shared hashes of row r are
    lists[ends[r]:ends[r + 1]], ascending.
    """

    edges: Indices
    hashes: Indices
    ids: Indices
    lists: Indices
    ends: Indices
    arrays: Arrays


class HashPairs(NamedTuple):
    """Pairs (m,) of rows, left < right, and how many hashes they share."""

    left: Indices
    right: Indices
    shared: Indices


@compiled
def pairs_in_hash_buckets(buckets: HashBuckets, thresholds: Thresholds) -> HashPairs:
    """The pairs that share MIN_SHARED hashes or more, the first of them that of the bucket.

    Works are not paired, nor are stories with similar fingerprints, which are paired already.
    """
    left, right, shared, count = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64), 0
    for bucket in range(len(buckets.edges) - 1):
        for other in range(buckets.edges[bucket] + 1, buckets.edges[bucket + 1]):
            if buckets.ids[other] < 0:
                continue
            for one in range(buckets.edges[bucket], other):
                hashes, first = _shared(buckets, one, other)
                if hashes < MIN_SHARED or first != buckets.hashes[bucket]:
                    continue
                if score_pair(one, other, buckets.arrays, buckets.arrays, thresholds)[0]:
                    continue
                if count == len(left):
                    left, right = np.append(left, left), np.append(right, right)
                    shared = np.append(shared, shared)
                left[count], right[count], shared[count] = one, other, hashes
                count += 1
    return HashPairs(left[:count], right[:count], shared[:count])


@compiled
def _shared(buckets: HashBuckets, one: int, other: int) -> tuple[int, int]:
    """How many hashes two stories share, and the first of them; -1 for none."""
    n, m, count, first = buckets.ends[one], buckets.ends[other], 0, -1
    while n < buckets.ends[one + 1] and m < buckets.ends[other + 1]:
        if buckets.lists[n] == buckets.lists[m]:
            if count == 0:
                first = int(buckets.lists[n])
            count += 1
            n += 1
            m += 1
        elif buckets.lists[n] < buckets.lists[m]:
            n += 1
        else:
            m += 1
    return count, first
