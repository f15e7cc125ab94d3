"""The table of banding: precision, recall and candidates by bands x rows, for shingles of words and of characters.

Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3.  The signatures are those of the daemon.  The
pairs that should be found are counted by exact Jaccard similarity, without signatures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import minhash
from neardup.core.fingerprint.minhash import signature, signature_rows
from neardup.core.fingerprint.word_hashes import Hashes, hash_words, mix

CHARACTERS = 5  # of a character shingle
# bands, rows of a band, and how many bands a pair must share to be a candidate
BANDINGS = ((64, 1, 1), (32, 2, 1), (32, 2, 2), (21, 3, 1), (16, 4, 1), (12, 5, 1), (8, 8, 1))
COLUMNS = 1 << 14  # of the incidence matrix, one for each shingle, that are multiplied at a time


@dataclass(frozen=True, slots=True)
class BandingCounts:
    """Counts of stories and of their pairs: `similar`, `candidates` of a banding, and `found`: both of these."""

    stories: int = 0
    similar: int = 0
    candidates: int = 0
    found: int = 0

    def __add__(self, other: "BandingCounts") -> "BandingCounts":
        return BandingCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def precision(self) -> float | None:
        return self.found / self.candidates if self.candidates else None

    @property
    def recall(self) -> float | None:
        return self.found / self.similar if self.similar else None

    @property
    def f1(self) -> float | None:
        total = self.candidates + self.similar
        return 2 * self.found / total if total else None

    @property
    def candidates_per_lookup(self) -> float | None:
        """The mean number of candidates of a story; a pair counts for both of its stories."""
        return 2 * self.candidates / self.stories if self.stories else None


def word_shingles(words: Sequence[bytes]) -> Hashes:
    """Hashes of the distinct pairs of adjacent words: the daemon's shingles."""
    return minhash.shingles(hash_words(words).hashes)


def character_shingles(words: Sequence[bytes]) -> Hashes:
    """Hashes of the distinct runs of five characters of the normalised text."""
    codes = np.frombuffer(b" ".join(words).decode().encode("utf-32-le"), np.uint32).astype(np.uint64)
    length = max(len(codes) - CHARACTERS + 1, 0)
    hashes = np.zeros(length, np.uint64)
    for n in range(CHARACTERS):
        hashes = mix(hashes + codes[n : n + length] + np.uint64(1))
    return np.unique(hashes)


SHINGLES: Mapping[str, Callable[[Sequence[bytes]], Hashes]] = {
    "word 2-shingles": word_shingles,
    "character 5-shingles": character_shingles,
}


def count_by_banding(stories: Sequence[Hashes], jaccard: float) -> dict[tuple[int, int, int], BandingCounts]:
    """For each of BANDINGS, count the candidates among all pairs; similar pairs have at least this Jaccard similarity.

    Stories with too few shingles for a signature are left out.
    """
    signed = [(shingles, own) for shingles in stories if (own := signature(shingles)) is not None]
    n = len(signed)
    each_pair_once = np.triu(np.ones((n, n), bool), 1)
    similar = (similarities([shingles for shingles, _ in signed]) >= jaccard) & each_pair_once
    rows = signature_rows([own for _, own in signed])
    out = {}
    for bands, rows_per_band, shared in BANDINGS:
        candidates = (bands_shared(rows, bands, rows_per_band) >= shared) & each_pair_once
        found = int((candidates & similar).sum())
        out[bands, rows_per_band, shared] = BandingCounts(n, int(similar.sum()), int(candidates.sum()), found)
    return out


def similarities(stories: Sequence[Hashes]) -> npt.NDArray[np.float64]:
    """The exact Jaccard similarity of every two of n sets of shingles, of shape (n, n).

    The intersections are counted by multiplying the incidence matrix of stories and shingles with its transpose,
    COLUMNS shingles at a time.  A shingle of one story only is in no intersection and is left out.
    """
    sizes = np.array([len(story) for story in stories])
    _, column, counts = np.unique(np.concatenate(stories), return_inverse=True, return_counts=True)
    row = np.repeat(np.arange(len(stories)), sizes)
    shared = counts[column] > 1
    # the columns that are left are numbered without gaps
    column, row = (np.cumsum(counts > 1) - 1)[column[shared]], row[shared]
    common = np.zeros((len(stories), len(stories)))
    for start in range(0, int((counts > 1).sum()), COLUMNS):
        block = (column >= start) & (column < start + COLUMNS)
        incidence = np.zeros((len(stories), COLUMNS), np.float32)  # exact, because counts stay far below 2^24
        incidence[row[block], column[block] - start] = 1
        common += incidence @ incidence.T
    np.fill_diagonal(common, sizes)
    jaccard: npt.NDArray[np.float64] = common / (sizes[:, None] + sizes[None] - common)
    return jaccard


def bands_shared(rows: minhash.SignatureRows, bands: int, rows_per_band: int) -> npt.NDArray[np.int64]:
    """Count the bands that every two of n signatures, of shape (n, 64), share; shape (n, n)."""
    # the rows of a band, a byte each, make one integer
    weights = np.uint64(1) << np.arange(0, 8 * rows_per_band, 8, dtype=np.uint64)
    values = rows[:, : bands * rows_per_band].reshape(len(rows), bands, rows_per_band) @ weights
    shared = np.zeros((len(rows), len(rows)), np.int64)
    for band in values.T:
        shared += band[:, None] == band[None]
    return shared
