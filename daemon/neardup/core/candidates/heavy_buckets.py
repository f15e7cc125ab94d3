"""Heavy band values, shared by more than `max_bucket` stories, and the buckets truncated because of them.

A bucket can exceed `max_bucket` only if all the band values of its key are heavy.  A pair that also shares a light
value is therefore found in a bucket that is never truncated.  For a pair that shares heavy values only, `Truncations`
tells which bucket is the first to compare it.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.core.jit import compiled

Positions = npt.NDArray[np.int64]  # the indices of stories in the arrays of fingerprints
BandValues = npt.NDArray[np.unsignedinteger]  # (n, bands): the value of each story in each band
HeavyBands = npt.NDArray[np.uint32]  # (n,): bit b is set if the story's value in band b is heavy

LOW_VALUES = 1 << 16  # distinct values of the low 16 bits of a band
NOT_TRUNCATED = 1 << 62  # greater than any position


class Truncations(NamedTuple):
    """The m truncated buckets: `bucket_ids` (m,), ascending, and `limits` (m,), the first position that each excludes.

    The stories of a truncated bucket are compared only with the members before its limit.
    """

    bucket_ids: npt.NDArray[np.uint64]
    limits: Positions

    @classmethod
    def none(cls) -> Self:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    def with_added(self, bucket_ids: Sequence[int], limits: Sequence[int]) -> Self:
        """These truncations and the given ones."""
        all_ids = np.append(self.bucket_ids, np.array(bucket_ids, np.uint64))
        order = np.argsort(all_ids, kind="stable")
        return type(self)(all_ids[order], np.append(self.limits, limits)[order])


def heavy_bands(band_values: BandValues, positions: Positions, max_bucket: int) -> HeavyBands:
    """The heavy bands of each story: more than `max_bucket` of the stories at `positions` have its value in that band.

    Stories at other positions are not counted, and get no bits.
    """
    heavy = np.zeros(len(band_values), np.uint32)
    for band in range(band_values.shape[1]):
        possible = _possibly_heavy(band_values, positions, band, max_bucket)
        _, value_indices, counts = np.unique(band_values[possible, band], return_inverse=True, return_counts=True)
        heavy[possible[counts[value_indices] > max_bucket]] |= np.uint32(1 << band)
    return heavy


@compiled
def _possibly_heavy(band_values: BandValues, positions: Positions, band: int, max_bucket: int) -> Positions:
    """The positions whose value may be heavy: more than `max_bucket` of the positions share its low 16 bits."""
    counts = np.zeros(LOW_VALUES, np.int64)
    for position in positions:
        counts[band_values[position, band] & (LOW_VALUES - 1)] += 1
    kept = 0
    if counts.max() > max_bucket:
        possible = np.empty(len(positions), np.int64)
        for position in positions:
            possible[kept] = position  # the next one overwrites it unless it is counted as kept
            kept += counts[band_values[position, band] & (LOW_VALUES - 1)] > max_bucket
        return possible[:kept]
    return positions[:0]


@compiled
def truncation_limit(
    band_values: BandValues, story: int, first_band: int, second_band: int, truncations: Truncations
) -> int:
    """The limit of the bucket that a story is in under a key, or NOT_TRUNCATED."""
    bucket = bucket_id(band_values, story, first_band, second_band)
    index = np.searchsorted(truncations.bucket_ids, bucket)
    found = index < len(truncations.bucket_ids) and truncations.bucket_ids[index] == bucket
    return truncations.limits[index] if found else NOT_TRUNCATED


@compiled
def bucket_id(band_values: BandValues, story: int, first_band: int, second_band: int) -> np.uint64:
    """A number that identifies a story's bucket under a key.

    The high half holds the bands of the key, the low half the story's values in them.  The key is two bands
    of 16 bits, first_band < second_band, or one band of at most 32 bits, given as both.
    """
    value = np.uint64(band_values[story, second_band])
    if first_band != second_band:
        value |= np.uint64(band_values[story, first_band]) << np.uint64(16)
    return np.uint64(first_band << 5 | second_band) << np.uint64(32) | value
