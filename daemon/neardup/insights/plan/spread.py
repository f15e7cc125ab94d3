"""How unevenly the stories of a language fill the values of a band, from how much fuller a story's bucket is.

One number is measured: the skew, how often two unrelated stories share a band, in times of the uniform
2 ** -16.  The sizes of all buckets follow from what bands are made of.  A SimHash's bits lean to one side,
by normal quantiles; a row of a signature takes some values often, where a common word pair has the least
hash, each of them RATIO as often as the one before, and the others alike.  With these shapes the share of
empty buckets was within .03 of drawn prose (tests/support/synthetic.py) at 0.25 to 64 stories a value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, BANDS, HASH_BITS, ROWS_A_BAND, narrowed
from neardup.core.fingerprint.minhash import ROWS

Floats = npt.NDArray[np.float64]

BAND_VALUES = 1 << BAND_BITS
BYTE_VALUES = 256
FREQUENT, RATIO, FALL = 12, 0.65, 0.85
MOST_OFTEN = 0.9  # of the stories take a row's frequent values, at most
HALVINGS = 40
STEPS_A_FACTOR = 12  # values whose shares differ by less are taken together
LEAST_SHARE = 1e-10  # and so are those that have less
DEVIATIONS, FEWEST_MEMBERS = 8, 24  # of a Poisson distribution, how far its tails are followed

ROW_ORDER = np.arange(ROWS) * 27 % ROWS  # neighbours are not alike
BIT_ORDER = np.arange(HASH_BITS) * 47 % HASH_BITS
ROW_SCALES = (-np.log1p(-(np.arange(ROWS) + 0.5) / ROWS))[ROW_ORDER] ** FALL
BIT_QUANTILES = np.array([NormalDist().inv_cdf((n + 0.5) / HASH_BITS) for n in BIT_ORDER])


@dataclass(frozen=True, slots=True)
class Spread:
    """`counts` values of a tier's bands take each such `shares` of the stories.

    `collisions` (bands,): how often two stories share a band.
    """

    shares: Floats
    counts: Floats
    collisions: Floats

    def expected(self, stories: float, room: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.number]]) -> float:
        """The sum over all buckets of `room` for their members, where so many stories fall in them by chance."""
        means = self.shares * stories
        return float(sum(n * _mean(mean, room) for n, mean in zip(self.counts.tolist(), means.tolist(), strict=True)))

    def filled(self, stories: float) -> float:
        """Buckets with members."""
        return float(self.counts @ -np.expm1(-self.shares * stories))

    def met(self, stories: float, most: int) -> float:
        """Members, `most` of a bucket, of all the buckets that a story falls in."""
        return float(self.counts @ (self.shares * np.minimum(self.shares * stories, most)))

    def seen(self, stories: float, most: int) -> float:
        """Of these members the share that is among the `most`."""
        return self.met(stories, most) / (stories * float(self.collisions.sum())) if stories else 1.0


@lru_cache(maxsize=128)
def signature_spread(skew: float, bands: int, bits: int) -> Spread:
    """Of the first `bands` bands of a signature, hashed to so many bits."""
    rows = _row_shares(_solved(lambda scale: _row_skew(_row_shares(scale)), skew))
    every = np.arange(BAND_VALUES, dtype=">u2").view(np.uint8).reshape(-1, ROWS_A_BAND)
    bucket = narrowed(every, 1, bits)[:, 0]
    pairs = (np.outer(*rows[n : n + ROWS_A_BAND]).ravel() for n in range(0, ROWS_A_BAND * bands, ROWS_A_BAND))
    return _gathered(np.array([np.bincount(bucket, values, 1 << bits) for values in pairs]))


@lru_cache(maxsize=128)
def simhash_spread(skew: float) -> Spread:
    """Of the bands of a SimHash."""
    leans = _leans(_solved(lambda scale: _bit_skew(_leans(scale)), skew)).reshape(BANDS, BAND_BITS)
    bands = np.ones((BANDS, 1))
    for lean in leans.T[:, :, None]:
        bands = (bands[:, :, None] * np.stack(((1 - lean) / 2, (1 + lean) / 2), axis=2)).reshape(BANDS, -1)
    return _gathered(bands)


def even_spread(columns: int, bits: int) -> Spread:
    """Of so many columns whose values are all as likely."""
    share = 2.0**-bits
    return Spread(np.array([share]), np.array([columns / share]), np.full(columns, share))


def two_shared(collisions: Floats) -> float:
    """Of pairs that share each band with these probabilities, all below 1, by chance: the share that shares two."""
    none = np.prod(1 - collisions)
    return max(0.0, float(1 - none - none * (collisions / (1 - collisions)).sum()))


def _solved(skew_of: Callable[[float], float], skew: float) -> float:
    """The scale that gives this skew, or the nearest that can be had."""
    low, high = 0.0, 8.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if skew_of(middle) < skew else (low, middle)
    return low


def _row_shares(scale: float) -> Floats:
    """(64, 256): how often each row takes each value."""
    often = np.minimum(scale * ROW_SCALES, MOST_OFTEN)[:, None]
    falling = RATIO ** np.arange(FREQUENT)
    shares = np.repeat((1 - often) / BYTE_VALUES, BYTE_VALUES, axis=1)
    shares[:, :FREQUENT] += often * falling / falling.sum()
    return shares


def _row_skew(rows: Floats) -> float:
    alike = BYTE_VALUES * (rows**2).sum(axis=1)
    return float((alike[::2] * alike[1::2]).mean())


def _leans(scale: float) -> Floats:
    """(128,): of each bit, by how much more often it is set than not."""
    return np.array([math.erf(scale * quantile / math.sqrt(2)) for quantile in BIT_QUANTILES])


def _bit_skew(leans: Floats) -> float:
    return float((1 + leans.reshape(BANDS, BAND_BITS) ** 2).prod(axis=1).mean())


def _gathered(shares: Floats) -> Spread:
    """(bands, values) shares -> the same, those that are nearly alike taken together."""
    collisions = (shares**2).sum(axis=1)
    flat = shares.ravel()
    steps = np.rint(STEPS_A_FACTOR * np.log(np.maximum(flat, LEAST_SHARE))).astype(np.int64)
    steps -= steps.min()
    counts = np.bincount(steps)
    there = counts > 0
    return Spread(np.bincount(steps, flat)[there] / counts[there], counts[there].astype(float), collisions)


def _mean(mean: float, room: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.number]]) -> float:
    """The mean of `room`, which is 0 for nobody, over a Poisson distribution."""
    if not mean:
        return 0.0
    reach = DEVIATIONS * math.sqrt(mean) + FEWEST_MEMBERS
    members = np.arange(max(0, int(mean - reach)), int(mean + reach) + 1)
    logs = np.zeros(len(members))
    np.cumsum(np.log(mean) - np.log(members[1:]), out=logs[1:])
    weights = np.exp(logs - logs.max())
    return float(weights @ room(members) / weights.sum())
