"""The postings in memory that no segment holds yet, as sorted runs of keys.

A run is merged with the one before it when that one is at most MERGED_RATIO times as large, so there are few runs, and
a posting is sorted again only a few times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neardup.core.candidates.banding import Numbers
from neardup.index.passages.postings import (
    HASH_SHIFT,
    NUMBER_MASK,
    PREFIX_SHIFT,
    PREFIXES,
    Keys,
    Offsets,
    PassageHashes,
    Row,
    keys_of,
    merged,
    numbers_of,
)
from neardup.index.passages.ranges import Ranges, held_mask
from neardup.index.passages.segment_lookup import Counts

MERGED_RATIO = 2


@dataclass(frozen=True, slots=True)
class Run:
    """Some postings as sorted keys."""

    keys: Keys

    @property
    def postings(self) -> int:
        """How many postings it has."""
        return len(self.keys)

    def find(self, hashes: PassageHashes) -> tuple[Counts, Counts]:
        """For each hash, ascending: the place of its first key, and how many keys have it."""
        least = hashes.astype(np.uint64) << HASH_SHIFT
        places = np.searchsorted(self.keys, least)
        counts = np.zeros(len(hashes), np.int64)
        if len(self.keys):  # most hashes are in none, and each search takes time
            held = np.flatnonzero(self.keys[np.minimum(places, len(self.keys) - 1)] >> HASH_SHIFT == hashes)
            counts[held] = np.searchsorted(self.keys, least[held] | NUMBER_MASK, side="right") - places[held]
        return places, counts

    def numbers(self, places: Counts, counts: Counts) -> Numbers:
        """The numbers of the `counts` keys from each place on, one after the other."""
        ends = np.cumsum(counts)
        starts = np.repeat(places - (ends - counts), counts)
        return numbers_of(self.keys[starts + np.arange(len(starts))])

    def prefix_offsets(self) -> Offsets:
        """How many postings precede each prefix, and at last their number: (PREFIXES + 1,)."""
        prefixes = np.arange(PREFIXES, dtype=np.uint64) << PREFIX_SHIFT
        return np.append(np.searchsorted(self.keys, prefixes), len(self.keys)).astype(np.uint32)

    def keys_of_prefixes(self, prefixes: range) -> Keys:
        """The sorted keys of a range of prefixes."""
        shift = int(PREFIX_SHIFT)
        start = np.searchsorted(self.keys, np.uint64(prefixes.start << shift))
        stop = np.searchsorted(self.keys, np.uint64((prefixes.stop << shift) - 1), side="right")
        return self.keys[start:stop]


class Tail:
    """The stories in memory; not thread-safe, but `runs` is replaced and never changed."""

    def __init__(self) -> None:
        self.runs: tuple[Run, ...] = ()
        self._numbers: set[int] = set()

    @property
    def last(self) -> int:
        """The highest number, 0 if there is none."""
        return max(self._numbers, default=0)

    def add(self, rows: Sequence[Row], held: Ranges) -> None:
        """Add stories; those that the tail or the segments hold already are left out."""
        is_held = held_mask(held, np.array([number for number, _ in rows], np.int64)).tolist()
        new = {
            number: hashes
            for (number, hashes), left_out in zip(rows, is_held, strict=True)
            if not left_out and number not in self._numbers
        }
        self._numbers.update(new)
        keys = keys_of(list(new.items()))
        runs = list(self.runs)
        while runs and len(runs[-1].keys) <= MERGED_RATIO * len(keys):
            keys = merged([runs.pop().keys, keys])
        self.runs = (*runs, Run(keys))

    def remove(self, held: Ranges) -> None:
        """Remove the stories that the segments hold."""
        numbers = np.array(list(self._numbers), np.int64)
        is_held = held_mask(held, numbers)
        if is_held.any():
            self._numbers.difference_update(numbers[is_held].tolist())
            kept = (run.keys[~held_mask(held, numbers_of(run.keys))] for run in self.runs)
            self.runs = tuple(Run(keys) for keys in kept if len(keys))

    def runs_of(self, first: int, last: int) -> list[Run]:
        """The postings of the stories `first` to `last`."""
        return [Run(run.keys[held_mask([(first, last)], numbers_of(run.keys))]) for run in self.runs]
