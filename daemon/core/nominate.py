"""From what the bands brought up, the pairs worth a verifier's time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from daemon.core.banding import ROWS_A_BAND
from daemon.core.minhash import agreeing, signature_rows
from daemon.core.verify import hamming, hash_rows
from daemon.records import Banded, Language


class Limits(Protocol):
    """What a pair must show to be nominated, and how many matches of a story are kept."""

    @property
    def hamming(self) -> int: ...
    @property
    def bands(self) -> int: ...
    @property
    def shared_bands(self) -> int: ...
    @property
    def agreeing_rows(self) -> int: ...
    @property
    def max_matches(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Met:
    """The stories that the bands brought up for one: by its SimHash, and by its signature."""

    near: set[int]
    sketched: set[int]


@dataclass(frozen=True, slots=True)
class Nominee:
    """One story of a batch with its matches, best first; `capped` were left out."""

    story_id: int
    matches: tuple[int, ...]
    capped: int


def nominate(
    batch: Sequence[tuple[int, Banded]],
    met: Sequence[Met],
    others: Mapping[int, Banded],
    limits: Mapping[Language, Limits],
) -> list[Nominee]:
    """For each story of a batch, those it met that are within the distance, or agree in enough rows.

    `others` holds all that were met, by id.  Best is who agrees in the most rows, then who is
    nearest, then who has the lowest id.
    """
    ids = list(others)
    place = {story_id: n for n, story_id in enumerate(ids)}
    pairs = [
        (n, place[other], other in one.sketched)
        for n, one in enumerate(met)
        for other in one.near | one.sketched
        if other in place and others[other].language == batch[n][1].language
    ]
    if not pairs:
        return [Nominee(story_id, (), 0) for story_id, _ in batch]
    left, right, sketched = np.array(pairs, np.int64).T
    bits = hamming(
        hash_rows([banded.simhash for _, banded in batch])[left],
        hash_rows([banded.simhash for banded in others.values()])[right],
    )
    rows = _agreeing([banded for _, banded in batch], list(others.values()), left, right)
    most_bits, fewest_rows = np.array(
        [(limits[banded.language].hamming, limits[banded.language].agreeing_rows) for _, banded in batch]
    )[left].T
    kept = np.flatnonzero((bits <= most_bits) | ((sketched == 1) & (rows >= fewest_rows)))
    matched = np.array(ids, np.int64)[right[kept]]
    order = np.lexsort((matched, bits[kept], -rows[kept], left[kept]))
    edges = np.searchsorted(left[kept][order], np.arange(len(batch) + 1))
    best = matched[order].tolist()
    return [
        _capped(story_id, best[start:end], limits[banded.language].max_matches)
        for (story_id, banded), start, end in zip(batch, edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def _capped(story_id: int, matches: list[int], most: int) -> Nominee:
    return Nominee(story_id, tuple(matches[:most]), max(len(matches) - most, 0))


def _agreeing(
    batch: Sequence[Banded], others: Sequence[Banded], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Rows in which the pairs agree; 0 where either has no signature."""
    signed = [np.array([banded.signature is not None for banded in side]) for side in (batch, others)]
    rows = agreeing(
        signature_rows([banded.signature for banded in batch])[left],
        signature_rows([banded.signature for banded in others])[right],
    )
    return np.where(signed[0][left] & signed[1][right], rows, 0)


def together(
    batch: Sequence[tuple[int, Banded]], limits: Mapping[Language, Limits]
) -> Iterator[tuple[int, int, bool, bool]]:
    """The pairs inside one batch whose bands meet.

    Yields a, b, whether they are within the Hamming distance, whether they share enough bands.
    """
    by_language: dict[Language, list[tuple[int, Banded]]] = {}
    for story_id, banded in batch:
        by_language.setdefault(banded.language, []).append((story_id, banded))
    for language, members in by_language.items():
        wanted = limits[language]
        simhashes = hash_rows([banded.simhash for _, banded in members])
        near = hamming(simhashes[:, None], simhashes[None]) <= wanted.hamming
        signed = np.array([banded.signature is not None for _, banded in members])
        values = signature_rows([banded.signature for _, banded in members])[:, : wanted.bands * ROWS_A_BAND]
        bands = np.ascontiguousarray(values).view(np.uint16)
        shared = np.count_nonzero(bands[:, None] == bands[None], axis=-1) >= wanted.shared_bands
        sketched = shared & signed[:, None] & signed[None]
        for i, j in np.argwhere(np.triu(near | sketched, 1)).tolist():
            yield members[i][0], members[j][0], bool(near[i, j]), bool(sketched[i, j])
