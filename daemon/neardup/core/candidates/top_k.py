"""The pairs that a lookup of either story would nominate, and of these the best of each story, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.all_pairs import Portion, near_pairs, sketch_pairs
from neardup.core.candidates.banding import Banding
from neardup.core.candidates.heavy_buckets import Positions
from neardup.core.fingerprint.minhash import ROWS, SignatureRows, agreeing
from neardup.core.verify.scores import HashRows, hamming

POSITION_BITS = 24
HAMMING_BITS = 8
ROWS_BITS = 7
MAX_STORIES = 1 << POSITION_BITS
SORT_AT = 1 << 22  # pairs that wait, at the least, before they are sorted in

Ranked = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Held:
    """The n fingerprints of a language in order of the stories' numbers; n is at most MAX_STORIES.

    `ids` (n,), `simhashes` (n, 2), `signatures` (n, 64); `signed` (n,) tells which stories have one.
    """

    ids: npt.NDArray[np.int64]
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]

    @classmethod
    def zeros(cls, size: int) -> Self:
        """Room for so many stories."""
        return cls(
            np.zeros(size, np.int64),
            np.zeros((size, 2), np.uint64),
            np.zeros((size, ROWS), np.uint8),
            np.zeros(size, np.bool_),
        )


def nominated(held: Held, banding: Banding, agreeing_rows: int) -> Iterator[Portion]:
    """The pairs that are near, then those alike in their signatures; `done` counts the keys of the latter."""
    complete = True
    for portion in near_pairs(held.simhashes, banding.hamming, banding.max_bucket):
        complete &= not portion.capped
        yield replace(portion, done=0.0)
    for portion in sketch_pairs(
        held.signatures,
        np.flatnonzero(held.signed),
        bands=banding.bands,
        shared=banding.shared,
        agreeing_rows=agreeing_rows,
        max_bucket=banding.max_bucket,
    ):
        # What is near was given above, unless a run was cut there.
        yield portion.where(_bits(held, portion.left, portion.right) > banding.hamming) if complete else portion


class Shortlist:
    """For each story the best `most` of its matches among those before it; `left_out` counts the others.

    Best is who agrees in the most rows, then who is nearest, then who has the lowest id.  A pair is
    one number that sorts so: the story's position, rows that differ, Hamming distance, the match's
    place among the ids.  Of these, 8 bytes each, at most 2 * most * n are held, or SORT_AT.
    """

    def __init__(self, held: Held, most: int) -> None:
        self._held = held
        self._most = most
        self._by_id = np.argsort(held.ids)
        self._place = np.empty_like(self._by_id)
        self._place[self._by_id] = np.arange(len(self._by_id))
        self._best: Ranked = np.empty(0, np.uint64)
        self._waiting: list[Ranked] = []
        self._waits = 0
        self.left_out = 0

    def add(self, left: Positions, right: Positions) -> None:
        """Take in pairs, left < right; one that is held already changes nothing."""
        if not len(left):
            return
        self._waiting.append(self._ranked(left, right))
        self._waits += len(left)
        if self._waits > max(SORT_AT, len(self._best)):
            self._sort()

    def __len__(self) -> int:
        self._sort()
        return len(self._best)

    def pages(self, size: int) -> Iterator[list[tuple[int, int]]]:
        """The pairs as ids, a story and its match, so many at a time; a story's matches best first."""
        self._sort()
        for start in range(0, len(self._best), size):
            page = self._best[start : start + size]
            story = self._held.ids[(page >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)).astype(np.int64)]
            match = self._held.ids[self._by_id[(page & np.uint64(MAX_STORIES - 1)).astype(np.int64)]]
            yield list(zip(story.tolist(), match.tolist(), strict=True))

    def _ranked(self, left: Positions, right: Positions) -> Ranked:
        held = self._held
        bits = _bits(held, left, right)
        rows = agreeing(held.signatures.take(left, axis=0), held.signatures.take(right, axis=0))
        rows[~(held.signed[left] & held.signed[right])] = 0
        ranked = right
        for value, width in ((ROWS - rows, ROWS_BITS), (bits, HAMMING_BITS), (self._place[left], POSITION_BITS)):
            ranked = ranked << width | value
        return ranked.astype(np.uint64)

    def _sort(self) -> None:
        if not self._waiting:
            return
        ranked = np.concatenate((self._best, *self._waiting))
        self._waiting, self._waits = [], 0
        ranked.sort()
        ranked = ranked[np.diff(ranked, prepend=~ranked[:1]) != 0]
        stories = ranked >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)
        first = np.flatnonzero(np.diff(stories, prepend=~stories[:1]))
        nth = np.arange(len(ranked)) - np.repeat(first, np.diff(first, append=len(ranked)))
        self._best = ranked[nth < self._most]
        self.left_out += len(ranked) - len(self._best)


def _bits(held: Held, left: Positions, right: Positions) -> npt.NDArray[np.int64]:
    return hamming(held.simhashes.take(left, axis=0), held.simhashes.take(right, axis=0))
