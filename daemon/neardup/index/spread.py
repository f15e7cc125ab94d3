"""Models how unevenly the stories of a language are spread over the values of a band.

The model has one measured parameter, the skew: how often two unrelated stories share a band, in times of the uniform
2 ** -16.  The sizes of all buckets follow from how bands are made.  Each bit of a SimHash is biased, and the biases
follow normal quantiles.  A row of a signature has frequent values, where a common word pair has the lowest hash; each
is RATIO times as frequent as the one before, and all other values are equally rare.  With these shapes the share of
empty buckets was within .03 of that of drawn prose (tests/support/synthetic.py) at 0.25 to 64 stories per value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, BANDS, HASH_BITS, ROWS_A_BAND, hash_bands
from neardup.core.fingerprint.minhash import ROWS

Floats = npt.NDArray[np.float64]

BAND_VALUES = 1 << BAND_BITS
BYTE_VALUES = 256
FREQUENT, RATIO, FALL = 12, 0.65, 0.85
MOST_OFTEN = 0.9  # the largest share of stories with a frequent value in a row
HALVINGS = 40
STEPS_A_FACTOR = 12  # values whose shares differ by less are merged
LEAST_SHARE = 1e-10  # values with smaller shares are merged as well
DEVIATIONS, FEWEST_MEMBERS = 8, 24  # how far the tails of a Poisson distribution are summed

ROW_ORDER = np.arange(ROWS) * 27 % ROWS  # so that adjacent rows differ
BIT_ORDER = np.arange(HASH_BITS) * 47 % HASH_BITS
ROW_SCALES = (-np.log1p(-(np.arange(ROWS) + 0.5) / ROWS))[ROW_ORDER] ** FALL
BIT_QUANTILES = np.array([NormalDist().inv_cdf((n + 0.5) / HASH_BITS) for n in BIT_ORDER])


@dataclass(frozen=True, slots=True)
class Spread:
    """Classes of the values of all bands: `counts` values, each with `shares` of the stories (both (classes,)).

    `collisions` (bands,) is the probability that two stories share each band.
    """

    shares: Floats
    counts: Floats
    collisions: Floats

    def expected(self, stories: float, room: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.number]]) -> float:
        """The expected sum of `room` over all buckets, with stories spread at random; `room` maps members to bytes."""
        means = self.shares * stories
        return float(sum(n * _mean(mean, room) for n, mean in zip(self.counts.tolist(), means.tolist(), strict=True)))

    def filled(self, stories: float) -> float:
        """The expected number of buckets that are not empty."""
        return float(self.counts @ -np.expm1(-self.shares * stories))

    def read(self, stories: float, most: int) -> float:
        """The members that a lookup reads in all buckets of a story, at most `most` per bucket."""
        return float(self.counts @ (self.shares * np.minimum(self.shares * stories, most)))

    def read_share(self, stories: float, most: int) -> float:
        """The share of the members of a story's buckets that a lookup reads, at most `most` per bucket."""
        return self.read(stories, most) / (stories * float(self.collisions.sum())) if stories else 1.0


@lru_cache(maxsize=128)
def signature_spread(skew: float, bands: int, bits: int) -> Spread:
    """The spread over the first `bands` bands of a signature, hashed to `bits` bits."""
    rows = _row_shares(_solved(lambda scale: _row_skew(_row_shares(scale)), skew))
    every = np.arange(BAND_VALUES, dtype=">u2").view(np.uint8).reshape(-1, ROWS_A_BAND)
    bucket = hash_bands(every, 1, bits)[:, 0]
    pairs = (np.outer(*rows[n : n + ROWS_A_BAND]).ravel() for n in range(0, ROWS_A_BAND * bands, ROWS_A_BAND))
    return _gathered(np.array([np.bincount(bucket, values, 1 << bits) for values in pairs]))


@lru_cache(maxsize=128)
def simhash_spread(skew: float) -> Spread:
    """The spread over the bands of a SimHash."""
    leans = _leans(_solved(lambda scale: _bit_skew(_leans(scale)), skew)).reshape(BANDS, BAND_BITS)
    bands = np.ones((BANDS, 1))
    for lean in leans.T[:, :, None]:
        bands = (bands[:, :, None] * np.stack(((1 - lean) / 2, (1 + lean) / 2), axis=2)).reshape(BANDS, -1)
    return _gathered(bands)


def even_spread(columns: int, bits: int) -> Spread:
    """The spread over columns of `bits` bits whose values are all equally likely."""
    share = 2.0**-bits
    return Spread(np.array([share]), np.array([columns / share]), np.full(columns, share))


def two_shared(collisions: Floats) -> float:
    """The share of pairs with at least two bands in common, where each band is shared independently (all < 1)."""
    none = np.prod(1 - collisions)
    return max(0.0, float(1 - none - none * (collisions / (1 - collisions)).sum()))


def _solved(skew_of: Callable[[float], float], skew: float) -> float:
    """The scale that yields this skew, or the nearest one possible."""
    low, high = 0.0, 8.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if skew_of(middle) < skew else (low, middle)
    return low


def _row_shares(scale: float) -> Floats:
    """(64, 256): the share of stories that have each value in each row."""
    often = np.minimum(scale * ROW_SCALES, MOST_OFTEN)[:, None]
    falling = RATIO ** np.arange(FREQUENT)
    shares = np.repeat((1 - often) / BYTE_VALUES, BYTE_VALUES, axis=1)
    shares[:, :FREQUENT] += often * falling / falling.sum()
    return shares


def _row_skew(rows: Floats) -> float:
    collisions = BYTE_VALUES * (rows**2).sum(axis=1)
    return float((collisions[::2] * collisions[1::2]).mean())


def _leans(scale: float) -> Floats:
    """(128,): the bias of each bit, the probability that it is set less the probability that it is not."""
    return np.array([math.erf(scale * quantile / math.sqrt(2)) for quantile in BIT_QUANTILES])


def _bit_skew(leans: Floats) -> float:
    return float((1 + leans.reshape(BANDS, BAND_BITS) ** 2).prod(axis=1).mean())


def _gathered(shares: Floats) -> Spread:
    """(bands, values) shares -> their spread, with nearly equal shares merged."""
    collisions = (shares**2).sum(axis=1)
    flat = shares.ravel()
    steps = np.rint(STEPS_A_FACTOR * np.log(np.maximum(flat, LEAST_SHARE))).astype(np.int64)
    steps -= steps.min()
    counts = np.bincount(steps)
    used = counts > 0
    return Spread(np.bincount(steps, flat)[used] / counts[used], counts[used].astype(float), collisions)


def _mean(mean: float, room: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.number]]) -> float:
    """The mean of `room` over a Poisson distribution of members; `room` is 0 for an empty bucket."""
    if not mean:
        return 0.0
    reach = DEVIATIONS * math.sqrt(mean) + FEWEST_MEMBERS
    members = np.arange(max(0, int(mean - reach)), int(mean + reach) + 1)
    logs = np.zeros(len(members))
    np.cumsum(np.log(mean) - np.log(members[1:]), out=logs[1:])
    weights = np.exp(logs - logs.max())
    return float(weights @ room(members) / weights.sum())
