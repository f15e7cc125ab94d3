"""Builds an index from all stories at once, so that each bucket is written once and whole.

The stories are written to scratch files by language and column, and read back one column at a time: memory holds one
column of one language, however many stories there are.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, SHARED_BLOCKS, Banding, Values, block_values, narrowed
from neardup.index.packed_buckets import FIRST_BLOCK, NUMBER, Bits
from neardup.index.protocol import Bandings
from neardup.records import Language

if TYPE_CHECKING:
    from neardup.core.candidates.fingerprint_arrays import FingerprintArrays

BLOCKS, BANDS = "blocks", "bands"


class Spool:
    """Members and band values in scratch files, by language and group of columns; `sizes` counts the stories.

    A group is a set of columns with the same members, such as all bands of the signature.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._members: dict[tuple[Language, str], np.dtype[Any]] = {}
        self.sizes: Counter[Language] = Counter()

    def put(self, language: Language, group: str, members: npt.NDArray[Any], values: Values) -> None:
        """Append n members to a group, with their values (n, columns)."""
        self._members[language, group] = members.dtype
        self._append(f"{language}.{group}", members)
        for column in range(values.shape[1]):
            self._append(f"{language}.{group}.{column}", np.ascontiguousarray(values[:, column]))

    def buckets(self, language: Language, group: str, column: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Each value of a column, ascending, with its members in the order in which they were put."""
        values = np.fromfile(self._folder / f"{language}.{group}.{column}", np.uint16)
        members = np.fromfile(self._folder / f"{language}.{group}", self._members[language, group])
        members = members[np.argsort(values, kind="stable")]
        counts = np.bincount(values)
        ends = np.cumsum(counts)
        for value in np.flatnonzero(counts).tolist():
            yield value, members[ends[value] - counts[value] : ends[value]]

    def _append(self, name: str, column: npt.NDArray[Any]) -> None:
        with (self._folder / name).open("ab") as file:
            column.tofile(file)


def spool_page(spool: Spool, page: "FingerprintArrays", bandings: Bandings, bits: Bits, *, blocks: bool = True) -> None:
    """Write what packed buckets will hold of a page of stories to the spool."""
    for language, stories in page.by_language():
        signed, banding, width = stories.where(stories.signed), bandings[language], bits[language]
        spool.sizes[language] += len(stories)
        spool.put(language, BANDS, signed.numbers, narrowed(signed.signatures, banding.bands, width))
        if blocks:
            spool.put(language, BLOCKS, stories.numbers, block_values(stories.simhashes, banding.hamming, width))


@dataclass(frozen=True, slots=True)
class SpooledColumn:
    """A column of the packed buckets of a language; writing it counts as progress by `stories` stories."""

    language: Language
    group: str
    nth: int
    stories: int

    def buckets(self, spool: Spool) -> Iterator[tuple[int, bytes]]:
        """The column's buckets, ascending, and the contents of each."""
        column = self.nth if self.group == BANDS else FIRST_BLOCK + self.nth
        for value, members in spool.buckets(self.language, self.group, self.nth):
            yield column << BAND_BITS | value, members.astype(NUMBER, copy=False).tobytes()


def spooled_columns(spool: Spool, bandings: Bandings, *, blocks: bool = True) -> Iterator[SpooledColumn]:
    """All columns in the spool, in the order of their buckets; their `stories` add up to those of the spool."""
    for language in bandings:
        if n := spool.sizes[language]:
            columns = _columns(bandings[language], blocks=blocks)
            for at, (group, nth) in enumerate(columns):
                yield SpooledColumn(language, group, nth, n * (at + 1) // len(columns) - n * at // len(columns))


def _columns(banding: Banding, *, blocks: bool) -> list[tuple[str, int]]:
    columns = [(BANDS, band) for band in range(banding.bands)]
    return columns + [(BLOCKS, block) for block in range(banding.hamming + SHARED_BLOCKS) if blocks]
