"""The bucket join: all pairs of stories that share a bucket, each pair once.  The inner loop of a sweep.

Keys and buckets.  A key is two bands (first, second) in ascending order, or one band.  The stories with equal values
in the bands of a key form a bucket, and every two members of a bucket are a candidate pair.

Each pair once.  A pair that shares k bands shares k(k - 1) / 2 buckets.  It is found in the first of its keys, in
lexicographic order.  So a pair's key follows from the values alone, and found pairs need not be remembered.

No bucket is truncated, however large: which pairs are found is a function of the set of stories.

Lookups join too: a number that occurs in several of the buckets of a lookup is found (`find_shared`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Indices, Numbers
from neardup.core.native import candidates as native
from neardup.core.native import in_c

Positions = npt.NDArray[np.int64]  # the indices of stories in the arrays of fingerprints
BandValues = npt.NDArray[np.unsignedinteger]  # (n, bands): the value of each story in each band
FingerprintBytes = npt.NDArray[np.uint8]  # (n, width)

COMPARED_AT_ONCE = 1 << 16  # pairs


class Stories(NamedTuple):
    """Fingerprints of n stories, as band values and as bytes; both arrays are C-contiguous."""

    band_values: BandValues
    fingerprints: FingerprintBytes


class Runs(NamedTuple):
    """Stories grouped by their value in a band; the positions of run r are members[edges[r]:edges[r + 1]].

    They are sorted by the first band other than this one, and then by position.
    """

    members: Positions
    edges: Positions


class JoinRules(NamedTuple):
    """A pair must share at least `min_bands` bands and agree in at least `min_bytes` bytes of the fingerprints."""

    min_bands: int
    min_bytes: int


class Keys(NamedTuple):
    """The keys (first_band, second) for each second band in range(start, stop).

    The second bands follow the first band; or there is only one, the first band itself: then a key is a single band.
    """

    first_band: int
    start: int
    stop: int
    rules: JoinRules


@in_c(native.join_runs)
def join_runs(stories: Stories, runs: Runs, keys: Keys, room: int) -> Iterator[tuple[Positions, Positions, float]]:
    """The pairs of the keys, and the share of work done.

    At most `room` pairs at a time, or as many as the longest run has members if these are more.
    """
    run_of, done = np.repeat(np.arange(len(runs.edges) - 1), np.diff(runs.edges)), 0.0
    for second in range(keys.start, keys.stop):
        values = stories.band_values[runs.members, second].astype(np.int64)
        order = np.lexsort((runs.members, values, run_of))
        members, is_first = runs.members[order], np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(run_of[order]) != 0) | (np.diff(values[order]) != 0)
        starts = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]  # of each member's bucket
        others = np.arange(len(order)) - starts  # that each is compared with
        ends = np.cumsum(others)
        for begin in range(0, int(others.sum()), COMPARED_AT_ONCE):
            pairs = np.arange(begin, min(begin + COMPARED_AT_ONCE, ends[-1]))
            later = np.searchsorted(ends, pairs, "right")
            left, right = members[starts[later] + pairs - (ends - others)[later]], members[later]
            kept = _belong_here(stories, left, right, keys, second)
            left, right = left[kept], right[kept]
            for start in range(0, len(left), room):
                yield left[start : start + room], right[start : start + room], done
        done = (second - keys.start + 1) / (keys.stop - keys.start)
        yield members[:0], members[:0], done


def _belong_here(stories: Stories, left: Positions, right: Positions, keys: Keys, second: int) -> Positions:
    """Which pairs (m,) of members of a bucket, left < right, meet the rules and belong to its key, as indices."""
    equal_bytes = (stories.fingerprints[left] == stories.fingerprints[right]).sum(axis=1)
    shared = stories.band_values[left] == stories.band_values[right]
    shares_earlier = np.delete(shared[:, :second], [band for band in [keys.first_band] if band < second], axis=1)
    meets_rules = (equal_bytes >= keys.rules.min_bytes) & (shared.sum(axis=1) >= keys.rules.min_bands)
    return np.flatnonzero(meets_rules & ~shares_earlier.any(axis=1))


@in_c(native.find_shared)
def find_shared(members: Numbers, edges: Indices, lookups: Indices, least: int) -> tuple[Numbers, Indices]:
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
