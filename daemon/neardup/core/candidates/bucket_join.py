"""The bucket join: all pairs of stories that share a bucket, each pair once.  The inner loop of a sweep.

Keys and buckets.  A key is two bands (first, second) in ascending order, or one band.  The stories with equal values
in the bands of a key form a bucket, and every two members of a bucket are a candidate pair.

Heavy values.  A value of a band is heavy if more than max_bucket stories have it, and light otherwise.  A bucket of
more than max_bucket members is truncated: each member is compared only with the first max_bucket by position.  All the
band values of its key are heavy.

Each pair once.  A pair that shares k bands shares k(k - 1) / 2 buckets.  It is found in the first of its keys (in
lexicographic order) that has a light value: such a bucket is never truncated.  If all shared values are heavy, it is
found in the first key whose truncated bucket still compares it.  So a pair's key follows from the values alone, and
found pairs need not be remembered.

Lookups join too: a number that occurs in several of the buckets of a lookup is found (`find_shared`).
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Flags, Indices, Numbers
from neardup.core.native import candidates as native
from neardup.core.native import in_c

Positions = npt.NDArray[np.int64]  # the indices of stories in the arrays of fingerprints
BandValues = npt.NDArray[np.unsignedinteger]  # (n, bands): the value of each story in each band
HeavyBands = npt.NDArray[np.uint32]  # (n,): bit b is set if the story's value in band b is heavy
FingerprintBytes = npt.NDArray[np.uint8]  # (n, width)

LOW_VALUES = 1 << 16  # distinct values of the low 16 bits of a band
COMPARED_AT_ONCE = 1 << 16  # pairs


class Stories(NamedTuple):
    """Fingerprints of n stories, as band values and as bytes; both arrays are C-contiguous."""

    band_values: BandValues
    fingerprints: FingerprintBytes
    heavy: HeavyBands


class Runs(NamedTuple):
    """Stories grouped by their value in a band; the positions of run r are members[edges[r]:edges[r + 1]].

    They are sorted by the first band other than this one, and then by position.
    """

    members: Positions
    edges: Positions


class JoinRules(NamedTuple):
    """A pair must share at least `min_bands` bands and agree in at least `min_bytes` bytes of the fingerprints.

    In a bucket of more than `max_bucket` members, each member is compared only with the first `max_bucket` by position.
    """

    min_bands: int
    min_bytes: int
    max_bucket: int


class Keys(NamedTuple):
    """The keys (first_band, second) for each second band in range(start, stop).

    The second bands follow the first band; or there is only one, the first band itself: then a key is a single band.
    """

    first_band: int
    start: int
    stop: int
    rules: JoinRules


class Truncations(NamedTuple):
    """The m truncated buckets: `bucket_ids` (m,), ascending, and `limits` (m,), the first position that each excludes.

    The stories of a truncated bucket are compared only with the members before its limit.
    """

    bucket_ids: npt.NDArray[np.uint64]
    limits: Positions

    @classmethod
    def none(cls) -> Self:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    def with_added(self, buckets: "list[TruncatedBucket]") -> Self:
        """These truncations and the given ones."""
        ids = np.append(self.bucket_ids, np.array([bucket.bucket_id for bucket in buckets], np.uint64))
        limits = np.append(self.limits, np.array([bucket.limit for bucket in buckets], np.int64))
        order = np.argsort(ids, kind="stable")
        return type(self)(ids[order], limits[order])


class TruncatedBucket(NamedTuple):
    """A bucket of more than max_bucket members: its id, second band, one of its members, its size, and its limit."""

    bucket_id: int
    second_band: int
    member: int
    size: int
    limit: int


def find_heavy_bands(band_values: BandValues, positions: Positions, max_bucket: int) -> HeavyBands:
    """The heavy bands of each story: more than `max_bucket` of the stories at `positions` have its value in that band.

    Stories at other positions are not counted, and get no bits.
    """
    heavy = np.zeros(len(band_values), np.uint32)
    if len(positions) <= max_bucket:
        return heavy
    for band in range(band_values.shape[1]):
        values = band_values[positions, band]
        low_values = values.astype(np.uint16)
        counts_of_low = np.bincount(low_values, minlength=LOW_VALUES)
        if counts_of_low.max() <= max_bucket:
            continue
        possible = counts_of_low[low_values] > max_bucket
        _, value_indices, counts = np.unique(values[possible], return_inverse=True, return_counts=True)
        heavy[positions[possible][counts[value_indices] > max_bucket]] |= np.uint32(1 << band)
    return heavy


def make_bucket_id(band_values: BandValues, story: int, first_band: int, second_band: int) -> int:
    """A number that identifies a story's bucket under a key.

    The high half holds the bands of the key, the low half the story's values in them.  The key is two bands
    of 16 bits, first_band < second_band, or one band of at most 32 bits, given as both.
    """
    value = int(band_values[story, second_band])
    if first_band != second_band:
        value |= int(band_values[story, first_band]) << 16
    return (first_band << 5 | second_band) << 32 | value


def list_truncated_buckets(stories: Stories, runs: Runs, keys: Keys) -> list[TruncatedBucket]:
    """The buckets of these keys that exceed `max_bucket`, by their second bands within each run."""
    most, truncated = keys.rules.max_bucket, list[TruncatedBucket]()
    for run in np.flatnonzero(np.diff(runs.edges) > most).tolist():
        members = runs.members[runs.edges[run] : runs.edges[run + 1]]
        for second in range(keys.start, keys.stop):
            heavy = members[_is_heavy(stories, members, second)]
            values, sizes = np.unique(stories.band_values[heavy, second], return_counts=True)
            for value in values[sizes > most]:
                bucket = np.sort(heavy[stories.band_values[heavy, second] == value])
                member = int(bucket[0])
                own_id = make_bucket_id(stories.band_values, member, keys.first_band, second)
                truncated.append(TruncatedBucket(own_id, second, member, len(bucket), int(bucket[most])))
    return truncated


@in_c(native.join_runs)
def join_runs(
    stories: Stories, runs: Runs, keys: Keys, truncations: Truncations, room: int
) -> Iterator[tuple[Positions, Positions, float]]:
    """The pairs of the keys, at most `room` at a time, which is `max_bucket` or more; and the share of work done.

    `truncations` are those of these keys and of all that begin with an earlier band.
    """
    run_of, done = np.repeat(np.arange(len(runs.edges) - 1), np.diff(runs.edges)), 0.0
    limits = dict(zip(truncations.bucket_ids.tolist(), truncations.limits.tolist(), strict=True))
    for second in range(keys.start, keys.stop):
        values = stories.band_values[runs.members, second].astype(np.int64)
        order = np.lexsort((runs.members, values, run_of))
        members, is_first = runs.members[order], np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(run_of[order]) != 0) | (np.diff(values[order]) != 0)
        starts = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]  # of each member's bucket
        others = np.minimum(np.arange(len(order)) - starts, keys.rules.max_bucket)  # that each is compared with
        ends = np.cumsum(others)
        for begin in range(0, int(others.sum()), COMPARED_AT_ONCE):
            pairs = np.arange(begin, min(begin + COMPARED_AT_ONCE, ends[-1]))
            later = np.searchsorted(ends, pairs, "right")
            left, right = members[starts[later] + pairs - (ends - others)[later]], members[later]
            kept = _belong_here(stories, left, right, keys, second, limits)
            left, right = left[kept], right[kept]
            for start in range(0, len(left), room):
                yield left[start : start + room], right[start : start + room], done
        done = (second - keys.start + 1) / (keys.stop - keys.start)
        yield members[:0], members[:0], done


def _belong_here(  # noqa: PLR0917 - the pairs, and their key
    stories: Stories, left: Positions, right: Positions, keys: Keys, second: int, limits: dict[int, int]
) -> Positions:
    """Which pairs (m,) of members of a bucket, left < right, meet the rules and belong to its key, as indices."""
    rules, single = keys.rules, keys.start == keys.first_band  # single: a key is one band
    pairs = np.arange(len(left))
    for band in set(range(second)) - {keys.first_band}:
        # A pair that shares a light value of this band belongs to the key of this band, or of this and the first one.
        is_shared = stories.band_values[left[pairs], band] == stories.band_values[right[pairs], band]
        pairs = pairs[~is_shared | _is_heavy(stories, left[pairs], band)]
    equal_bytes = (stories.fingerprints[left[pairs]] == stories.fingerprints[right[pairs]]).sum(axis=1)
    pairs = pairs[equal_bytes >= rules.min_bytes]
    shared = stories.band_values[left[pairs]] == stories.band_values[right[pairs]]
    heavy = _is_heavy(stories, left[pairs, None], np.arange(shared.shape[1]))
    light = shared & ~heavy
    if single:
        belong = light.argmax(axis=1) == second
    else:
        nth, first = np.arange(len(pairs)), shared.argmax(axis=1)
        others = shared.copy()
        others[nth, first] = False
        second_shared = np.where(heavy[nth, first], light.argmax(axis=1), others.argmax(axis=1))
        belong = (first == keys.first_band) & (second_shared == second)
    for pair in np.flatnonzero(~light.any(axis=1)).tolist():
        bands = np.flatnonzero(shared[pair]).tolist()
        earlier = int(left[pairs[pair]])
        compared_at = (
            key
            for key in ([(band, band) for band in bands] if single else combinations(bands, 2))
            if earlier < limits.get(make_bucket_id(stories.band_values, earlier, *key), earlier + 1)
        )
        belong[pair] = next(compared_at) == (keys.first_band, second)
    return np.asarray(pairs[belong & (shared.sum(axis=1) >= rules.min_bands)])


def _is_heavy(stories: Stories, positions: Positions, bands: int | Positions) -> Flags:
    """Whether the values of stories in some bands are heavy; shapes broadcast."""
    return np.asarray((stories.heavy[positions] >> np.asarray(bands, np.uint32) & np.uint32(1)).astype(np.bool_))


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
