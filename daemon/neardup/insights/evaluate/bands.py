"""The classic table of banding: bands x rows against precision, recall and candidates, for words and for characters.

Leskovec, Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3.  The signatures are those of
the daemon; which pairs are alike is counted, pair by pair, without them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint import minhash
from neardup.core.fingerprint.minhash import signature, signature_rows
from neardup.core.fingerprint.word_hashes import Hashes, hashed, mixed

CHARACTERS = 5
BANDINGS = ((64, 1, 1), (32, 2, 1), (32, 2, 2), (21, 3, 1), (16, 4, 1), (12, 5, 1), (8, 8, 1))  # bands, rows, shared
COLUMNS = 1 << 14  # shingles multiplied at a time


@dataclass(frozen=True, slots=True)
class Tally:
    """What a banding did to the pairs of some stories."""

    stories: int = 0
    alike: int = 0
    candidates: int = 0
    found: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def precision(self) -> float | None:
        return self.found / self.candidates if self.candidates else None

    @property
    def recall(self) -> float | None:
        return self.found / self.alike if self.alike else None

    @property
    def f1(self) -> float | None:
        both = self.candidates + self.alike
        return 2 * self.found / both if both else None

    @property
    def candidates_per_lookup(self) -> float | None:
        """Each pair is a candidate of both its stories."""
        return 2 * self.candidates / self.stories if self.stories else None


def word_shingles(words: Sequence[bytes]) -> Hashes:
    """Hashes of the distinct pairs of adjacent words: the daemon's shingles."""
    return minhash.shingles(hashed(words))


def character_shingles(words: Sequence[bytes]) -> Hashes:
    """Hashes of the distinct runs of five characters of the normalised text."""
    codes = np.frombuffer(b" ".join(words).decode().encode("utf-32-le"), np.uint32).astype(np.uint64)
    length = max(len(codes) - CHARACTERS + 1, 0)
    hashes = np.zeros(length, np.uint64)
    for n in range(CHARACTERS):
        hashes = mixed(hashes + codes[n : n + length] + np.uint64(1))
    return np.unique(hashes)


SHINGLES: Mapping[str, Callable[[Sequence[bytes]], Hashes]] = {
    "word 2-shingles": word_shingles,
    "character 5-shingles": character_shingles,
}


def tallies(stories: Sequence[Hashes], jaccard: float) -> dict[tuple[int, int, int], Tally]:
    """Stories' shingles -> (bands, rows, shared) -> what that finds of the pairs of that similarity and more.

    Stories of too few shingles for a signature are left out.
    """
    signed = [(shingles, made) for shingles in stories if (made := signature(shingles)) is not None]
    once = np.triu(np.ones((len(signed), len(signed)), bool), 1)
    alike = (similarities([shingles for shingles, _ in signed]) >= jaccard) & once
    rows = signature_rows([made for _, made in signed])
    out = {}
    for bands, rows_a_band, least in BANDINGS:
        candidates = (bands_shared(rows, bands, rows_a_band) >= least) & once
        found = int((candidates & alike).sum())
        out[bands, rows_a_band, least] = Tally(len(signed), int(alike.sum()), int(candidates.sum()), found)
    return out


def similarities(stories: Sequence[Hashes]) -> npt.NDArray[np.float64]:
    """(n, n): the exact Jaccard similarity of every two sets of shingles.

    Their intersections are counted by multiplying the table of who has which shingle with itself, some
    columns at a time; a shingle that one story alone has is in no intersection.
    """
    sizes = np.array([len(story) for story in stories])
    _, column, counts = np.unique(np.concatenate(stories), return_inverse=True, return_counts=True)
    row = np.repeat(np.arange(len(stories)), sizes)
    shared = counts[column] > 1
    column, row = (np.cumsum(counts > 1) - 1)[column[shared]], row[shared]
    common = np.zeros((len(stories), len(stories)))
    for start in range(0, int((counts > 1).sum()), COLUMNS):
        here = (column >= start) & (column < start + COLUMNS)
        table = np.zeros((len(stories), COLUMNS), np.float32)  # exact: no count comes near 2^24
        table[row[here], column[here] - start] = 1
        common += table @ table.T
    np.fill_diagonal(common, sizes)
    jaccard: npt.NDArray[np.float64] = common / (sizes[:, None] + sizes[None] - common)
    return jaccard


def bands_shared(rows: minhash.SignatureRows, bands: int, rows_a_band: int) -> npt.NDArray[np.int64]:
    """(n, 64) signatures -> (n, n): how many bands every two have in common."""
    weights = np.uint64(1) << np.arange(0, 8 * rows_a_band, 8, dtype=np.uint64)
    values = rows[:, : bands * rows_a_band].reshape(len(rows), bands, rows_a_band) @ weights
    shared = np.zeros((len(rows), len(rows)), np.int64)
    for band in values.T:
        shared += band[:, None] == band[None]
    return shared
