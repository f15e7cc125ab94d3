"""Building an index from all stories at once: each bucket is written once, whole.

The stories are put aside in scratch files, by language and column, and read again one column at a time: so
memory holds a column of one language, however many stories there are.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding, Values, block_values, narrowed
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.index.packed_buckets import NEAR, NUMBER, Bits
from neardup.index.protocol import Bandings
from neardup.records import Language

NEAR_TIER, SKETCHED = "near", "sketched"


class Spool:
    """The members of tiers and their values, in files of a folder of its own; `sizes` counts the stories."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._members: dict[tuple[Language, str], np.dtype[Any]] = {}
        self.sizes: Counter[Language] = Counter()

    def put(self, language: Language, tier: str, members: npt.NDArray[Any], values: Values) -> None:
        """Add n members of a tier and their values (n, columns)."""
        self._members[language, tier] = members.dtype
        self._append(f"{language}.{tier}", members)
        for column in range(values.shape[1]):
            self._append(f"{language}.{tier}.{column}", np.ascontiguousarray(values[:, column]))

    def buckets(self, language: Language, tier: str, column: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """The values of a column, ascending, each with its members in the order they came in."""
        values = np.fromfile(self._folder / f"{language}.{tier}.{column}", np.uint16)
        members = np.fromfile(self._folder / f"{language}.{tier}", self._members[language, tier])
        members = members[np.argsort(values, kind="stable")]
        counts = np.bincount(values)
        ends = np.cumsum(counts)
        for value in np.flatnonzero(counts).tolist():
            yield value, members[ends[value] - counts[value] : ends[value]]

    def _append(self, name: str, column: npt.NDArray[Any]) -> None:
        with (self._folder / name).open("ab") as file:
            column.tofile(file)


def put_aside(spool: Spool, page: Columns, bandings: Bandings, bits: Bits, *, blocks: bool = True) -> None:
    """Put aside what packed buckets will hold of a page of stories."""
    for language, mine in page.by_language():
        signed, banding, width = mine.where(mine.signed), bandings[language], bits[language]
        spool.sizes[language] += len(mine)
        spool.put(language, SKETCHED, signed.numbers, narrowed(signed.signatures, banding.bands, width))
        if blocks:
            spool.put(language, NEAR_TIER, mine.numbers, block_values(mine.simhashes, banding.hamming, width))


@dataclass(frozen=True, slots=True)
class Part:
    """A column of the packed buckets of a language; `stories` of its stories are in when it is."""

    language: Language
    tier: str
    nth: int
    stories: int

    def buckets(self, spool: Spool) -> Iterator[tuple[int, bytes]]:
        """Its buckets, ascending, and what each holds."""
        column = self.nth if self.tier == SKETCHED else NEAR + self.nth
        for value, members in spool.buckets(self.language, self.tier, self.nth):
            yield column << BAND_BITS | value, members.astype(NUMBER, copy=False).tobytes()


def parts_of(spool: Spool, bandings: Bandings, *, blocks: bool = True) -> Iterator[Part]:
    """All columns that were put aside, in the order of their buckets."""
    for language in bandings:
        if n := spool.sizes[language]:
            columns = _columns(bandings[language], blocks=blocks)
            for at, (tier, nth) in enumerate(columns):
                yield Part(language, tier, nth, n * (at + 1) // len(columns) - n * at // len(columns))


def _columns(banding: Banding, *, blocks: bool) -> list[tuple[str, int]]:
    columns = [(SKETCHED, band) for band in range(banding.bands)]
    return columns + [(NEAR_TIER, block) for block in range(banding.hamming + SHARED_BLOCKS) if blocks]
