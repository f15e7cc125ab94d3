"""The pairs that lookups would nominate, and of these the best matches of each story, in bounded memory."""

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.candidates.all_pairs import PairChunk, find_near_pairs, find_signature_pairs
from neardup.core.candidates.banding import Banding
from neardup.core.candidates.bucket_join import Positions
from neardup.core.fingerprint.minhash import ROWS, SignatureRows, count_agreeing_rows
from neardup.core.fingerprint.word_hashes import HashRows, measure_hamming

POSITION_BITS = 24
HAMMING_BITS = 8
ROWS_BITS = 7
MAX_STORIES = 1 << POSITION_BITS
MIN_UNSORTED = 1 << 22  # pairs collected before they are merged into the sorted ones

Ids = npt.NDArray[np.int64]
RankedPairs = npt.NDArray[np.uint64]


class LanguageFingerprints(Struct, frozen=True):
    """The fingerprints of the n stories of a language, in order of the stories' ids; n is at most MAX_STORIES.

    `ids` (n,), `simhashes` (n, 2), `signatures` (n, 64); `signed` (n,) marks the stories that have a signature.
    """

    ids: Ids
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]

    @classmethod
    def zeros(cls, size: int) -> Self:
        """Arrays of zeros for so many stories."""
        return cls(
            np.zeros(size, np.int64),
            np.zeros((size, 2), np.uint64),
            np.zeros((size, ROWS), np.uint8),
            np.zeros(size, np.bool_),
        )


def find_nominated_pairs(
    stories: LanguageFingerprints, banding: Banding, agreeing_rows: int, first_new: int | None = None
) -> Iterator[PairChunk]:
    """The pairs within the Hamming distance, then those of similar signatures; `done` counts the latter's keys only.

    Given `first_new`, only the pairs of a story with an id from `first_new` on and a story before it.
    """
    for chunk in _find_all_pairs(stories, banding, agreeing_rows):
        if first_new is None:
            yield chunk
        else:
            yield chunk.where(is_new_and_old(stories.ids[chunk.left], stories.ids[chunk.right], first_new))


def is_new_and_old(left: Ids, right: Ids, first_new: int) -> npt.NDArray[np.bool_]:
    """Which pairs of ids (n,) consist of one from `first_new` on and one before it."""
    return np.not_equal(left >= first_new, right >= first_new)


def _find_all_pairs(stories: LanguageFingerprints, banding: Banding, agreeing_rows: int) -> Iterator[PairChunk]:
    for chunk in find_near_pairs(stories.simhashes, banding.hamming):
        yield replace(chunk, done=0.0)
    for chunk in find_signature_pairs(
        stories.signatures,
        np.flatnonzero(stories.signed),
        bands=banding.bands,
        shared=banding.shared,
        agreeing_rows=agreeing_rows,
    ):
        # near pairs were yielded above
        yield chunk.where(_compute_distances(stories, chunk.left, chunk.right) > banding.hamming)


class Shortlist:
    """For each story its best `most` matches among those with lower ids; `left_out` counts the other matches.

    The best match agrees in the most signature rows, then has the smallest Hamming distance, then the lowest id.  Each
    pair is packed into one number of 64 bits that sorts in this order: the story's position, the rows that differ, the
    Hamming distance, and the match's position.  At most 2 * most * n pairs are held, or MIN_UNSORTED if more.
    """

    def __init__(self, stories: LanguageFingerprints, most: int) -> None:
        self._stories = stories
        self._most = most
        self._best: RankedPairs = np.empty(0, np.uint64)
        self._unsorted: list[RankedPairs] = []
        self._unsorted_size = 0
        self._is_cut = np.zeros(len(stories.ids), np.bool_)
        self.left_out = 0

    @property
    def cut(self) -> frozenset[int]:
        """The ids of the stories that had more matches."""
        self._merge()
        return frozenset(self._stories.ids[self._is_cut].tolist())

    def add(self, left: Positions, right: Positions) -> None:
        """Add pairs, left < right; adding a pair again changes nothing."""
        if not len(left):
            return
        self._unsorted.append(self._pack_pairs(left, right))
        self._unsorted_size += len(left)
        if self._unsorted_size > max(MIN_UNSORTED, len(self._best)):
            self._merge()

    def __len__(self) -> int:
        self._merge()
        return len(self._best)

    def pages(self, size: int) -> Iterator[list[tuple[int, int]]]:
        """The pairs as ids (story, match), at most `size` at a time, by story; the matches of a story best first."""
        self._merge()
        for start in range(0, len(self._best), size):
            page = self._best[start : start + size]
            story = self._stories.ids[(page >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)).astype(np.int64)]
            match = self._stories.ids[(page & np.uint64(MAX_STORIES - 1)).astype(np.int64)]
            yield list(zip(story.tolist(), match.tolist(), strict=True))

    def _pack_pairs(self, left: Positions, right: Positions) -> RankedPairs:
        stories = self._stories
        bits = _compute_distances(stories, left, right)
        rows = count_agreeing_rows(stories.signatures.take(left, axis=0), stories.signatures.take(right, axis=0))
        rows[~(stories.signed[left] & stories.signed[right])] = 0
        packed = right
        for value, width in ((ROWS - rows, ROWS_BITS), (bits, HAMMING_BITS), (left, POSITION_BITS)):
            packed = packed << width | value
        return packed.astype(np.uint64)

    def _merge(self) -> None:
        """Merge the unsorted pairs into the best ones, without duplicates, and drop what exceeds `most`."""
        if not self._unsorted:
            return
        ranked = np.concatenate((self._best, *self._unsorted))
        self._unsorted, self._unsorted_size = [], 0
        ranked.sort()
        ranked = ranked[np.diff(ranked, prepend=~ranked[:1]) != 0]
        stories = ranked >> np.uint64(POSITION_BITS + HAMMING_BITS + ROWS_BITS)
        starts = np.flatnonzero(np.diff(stories, prepend=~stories[:1]))
        ranks = np.arange(len(ranked)) - np.repeat(starts, np.diff(starts, append=len(ranked)))
        self._best = ranked[ranks < self._most]
        self._is_cut[stories[ranks >= self._most].astype(np.int64)] = True
        self.left_out += len(ranked) - len(self._best)


def _compute_distances(stories: LanguageFingerprints, left: Positions, right: Positions) -> npt.NDArray[np.int64]:
    """The Hamming distance of each pair."""
    return measure_hamming(stories.simhashes.take(left, axis=0), stories.simhashes.take(right, axis=0))
