"""From what the bands brought up, the pairs worth a verifier's time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from daemon.core.banding import ROWS_A_BAND
from daemon.core.minhash import SignatureRows, agreeing, signature_rows
from daemon.core.verify import HashRows, hamming, hash_rows
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


Alike = tuple[Sequence[int], Banded]  # the ids of stories that share their fingerprints


def nominate(
    batch: Sequence[Alike], met: Sequence[Met], others: Mapping[int, Banded], limits: Mapping[Language, Limits]
) -> list[Nominee]:
    """For each story of a batch, those it met that are within the distance, or agree in enough rows.

    `met` goes with `batch`; stories that share their fingerprints meet each other, too.  `others` holds
    all that were met, by id.  Best is who agrees in the most rows, then who is nearest, then who has
    the lowest id.
    """
    known = _Known.of(others)
    nominees = []
    for (ids, banded), seen in zip(batch, met, strict=True):
        best = known.best(banded, seen, ids if len(ids) > 1 else (), limits[banded.language])
        most = limits[banded.language].max_matches
        for story_id in ids:
            mine = [other for other in best[: most + 1] if other != story_id][:most]
            nominees.append(Nominee(story_id, tuple(mine), len(best) - (len(ids) > 1) - len(mine)))
    return nominees


@dataclass(frozen=True, slots=True)
class _Known:
    """Those that were met, as arrays; `place` says where a story stands in them."""

    place: dict[int, int]
    bandeds: list[Banded]
    ids: npt.NDArray[np.int64]
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, others: Mapping[int, Banded]) -> Self:
        bandeds = list(others.values())
        return cls(
            place={story_id: n for n, story_id in enumerate(others)},
            bandeds=bandeds,
            ids=np.fromiter(others, np.int64, len(others)),
            simhashes=hash_rows([banded.simhash for banded in bandeds]),
            signatures=signature_rows([banded.signature for banded in bandeds]),
            signed=np.array([banded.signature is not None for banded in bandeds], bool),
        )

    def best(self, banded: Banded, met: Met, alike: Sequence[int], limits: Limits) -> list[int]:
        """Who of those met is nominated, the best first."""
        places = [
            (self.place[other], other in met.sketched)
            for other in met.near | met.sketched | set(alike)
            if other in self.place
        ]
        if not places:
            return []
        at, sketched = np.array(places).T
        bits = hamming(hash_rows([banded.simhash]), self.simhashes[at])
        rows = agreeing(signature_rows([banded.signature]), self.signatures[at]) * self.signed[at]
        if banded.signature is None:
            rows[:] = 0
        kept = (bits <= limits.hamming) | ((sketched == 1) & (rows >= limits.agreeing_rows))
        kept &= np.array([self.bandeds[n].language == banded.language for n in at.tolist()], bool)
        order = np.lexsort((self.ids[at[kept]], bits[kept], -rows[kept]))
        return list(self.ids[at[kept]][order].tolist())


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
