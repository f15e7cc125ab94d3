"""The postings in memory that no segment holds yet, as sorted runs of keys.

Runs are merged when MERGED_RUNS are of about the same size or smaller, so there are few runs, and a posting is sorted
again only a few times.

Most hashes of a new text are in none of the runs.  A filter refuses nearly all of them by one access to memory.  It is
a Bloom filter (CACM 1970) with one hash function, which is the passage hash itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.candidates.banding import Numbers
from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.index.passages.postings import (
    HASH_SHIFT,
    NUMBER_MASK,
    PREFIX_SHIFT,
    PREFIXES,
    Counts,
    Keys,
    Offsets,
    PassageHashes,
    Ranges,
    Row,
    are_held,
    get_hashes,
    get_numbers,
    list_places,
    make_keys,
    merge_keys,
)

MERGED_RUNS = 8
MERGED_BITS = 3  # of sizes that are about the same
UNUSED_BITS = 5  # of a hash, for its place in a filter
FILTER_BYTES = 1 << 32 - UNUSED_BITS - 3  # 16 MB, of which only the parts in use take memory

Filter = npt.NDArray[np.uint8]


def make_filter() -> Filter:
    """A filter of no hashes."""
    return np.zeros(FILTER_BYTES, np.uint8)


@in_c(native.put_in_filter)
def put_in_filter(hashes: PassageHashes, filter_: Filter) -> None:
    """Let a filter hold these hashes, too."""
    places, bits = _filter_bits(hashes)
    np.bitwise_or.at(filter_, places, bits)


@in_c(native.may_hold)
def may_hold(filter_: Filter, hashes: PassageHashes) -> npt.NDArray[np.bool_]:
    """Whether a filter may hold each hash: surely those that were put in, and few of the others."""
    places, bits = _filter_bits(hashes)
    return np.asarray(filter_[places] & bits != 0)


def _filter_bits(hashes: PassageHashes) -> tuple[PassageHashes, Filter]:
    """For each hash the byte of a filter, and the bit of it."""
    bits = hashes >> np.uint32(UNUSED_BITS)
    return bits >> np.uint32(3), np.uint8(1) << (bits & np.uint32(7)).astype(np.uint8)


class Run(Struct, frozen=True):
    """Some postings as sorted keys."""

    keys: Keys

    @property
    def postings(self) -> int:
        """How many postings it has."""
        return len(self.keys)

    def find(self, hashes: PassageHashes) -> tuple[Counts, Counts]:
        """For each hash: the place of its first key, and how many keys have it."""
        return find_keys(self.keys, hashes)

    def numbers(self, places: Counts, counts: Counts) -> Numbers:
        """The numbers of the `counts` keys from each place on, one after the other."""
        return get_numbers(self.keys[list_places(places, counts)])

    def read_prefix_offsets(self) -> Offsets:
        """How many postings precede each prefix, and at last their number: (PREFIXES + 1,)."""
        prefixes = np.arange(PREFIXES, dtype=np.uint64) << PREFIX_SHIFT
        return np.append(np.searchsorted(self.keys, prefixes), len(self.keys)).astype(np.uint32)

    def read_keys_of_prefixes(self, prefixes: range) -> Keys:
        """The sorted keys of a range of prefixes."""
        shift = int(PREFIX_SHIFT)
        start = np.searchsorted(self.keys, np.uint64(prefixes.start << shift))
        stop = np.searchsorted(self.keys, np.uint64((prefixes.stop << shift) - 1), side="right")
        return self.keys[start:stop]


@in_c(native.find_keys)
def find_keys(keys: Keys, hashes: PassageHashes) -> tuple[Counts, Counts]:
    """For each hash: how many of the sorted keys have a smaller hash, and how many have the same."""
    first = hashes.astype(np.uint64) << HASH_SHIFT
    places = np.searchsorted(keys, first)
    return places, np.searchsorted(keys, first | NUMBER_MASK, side="right") - places


class TailView(NamedTuple):
    """What a tail held at a time: its runs, and a filter of their hashes, which may get more."""

    runs: tuple[Run, ...]
    filter: Filter


class Tail:
    """The stories in memory; not thread-safe, but a `view` stays good."""

    def __init__(self) -> None:
        self.view = TailView((), make_filter())
        self._numbers: set[int] = set()

    @property
    def runs(self) -> tuple[Run, ...]:
        """All postings."""
        return self.view.runs

    @property
    def last(self) -> int:
        """The highest number, 0 if there is none."""
        return max(self._numbers, default=0)

    def add(self, rows: Sequence[Row], held: Ranges) -> None:
        """Add stories; those that the tail or the segments hold already are left out."""
        is_held = are_held(held, np.array([number for number, _ in rows], np.int64)).tolist()
        new = {
            number: hashes
            for (number, hashes), left_out in zip(rows, is_held, strict=True)
            if not left_out and number not in self._numbers
        }
        self._numbers.update(new)
        keys = make_keys(list(new.items()))
        put_in_filter(get_hashes(keys), self.view.filter)
        runs = [*self.runs, Run(keys)]
        while (start := _find_first_to_merge(runs)) is not None:
            runs[start:] = [Run(merge_keys([run.keys for run in runs[start:]]))]
        self.view = TailView(tuple(runs), self.view.filter)

    def remove(self, held: Ranges) -> None:
        """Remove the stories that the segments hold."""
        numbers = np.array(list(self._numbers), np.int64)
        is_held = are_held(held, numbers)
        if is_held.any():
            self._numbers.difference_update(numbers[is_held].tolist())
            kept = [run.keys[~are_held(held, get_numbers(run.keys))] for run in self.runs]
            self.view = TailView(tuple(Run(keys) for keys in kept if len(keys)), make_filter())
            for keys in kept:
                put_in_filter(get_hashes(keys), self.view.filter)

    def runs_of(self, first: int, last: int) -> list[Run]:
        """The postings of the stories `first` to `last`."""
        return [Run(run.keys[are_held([(first, last)], get_numbers(run.keys))]) for run in self.runs]


def _find_first_to_merge(runs: Sequence[Run]) -> int | None:
    """From which run on the last ones are to be merged; None if none are."""
    largest = len(runs[-1].keys).bit_length() // MERGED_BITS
    start = len(runs)
    while start and len(runs[start - 1].keys).bit_length() // MERGED_BITS <= largest:
        start -= 1
    return start if len(runs) - start >= MERGED_RUNS else None
