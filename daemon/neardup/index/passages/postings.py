"""Postings in memory: their coding, of which `segment` has the theory, reading many in order, and the tail.

A *posting* is a passage hash and the number of a story that has it.  A key is the hash of a posting in the upper half
of 64 bits and the number in the lower half.  The hashes with the same top PREFIX_BITS bits share a *prefix*; each
bucket of a segment lies in one prefix.  All postings of several sources are read in the order of their hashes, a
stripe of prefixes at a time, in bounded memory.

The *tail*, which no segment holds yet, is sorted runs of keys.  Runs are merged when MERGED_RUNS are of about the same
size or smaller, so there are few runs, and a posting is sorted again only a few times.  Most hashes of a new text are
in none of the runs.  A filter refuses nearly all of them by one access to memory.  It is a Bloom filter (CACM 1970)
with one hash function, which is the passage hash itself.

Ranges of story numbers are inclusive, ascending and disjoint.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.candidates.banding import Numbers
from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.core.native.segments import Bytes, Coding
from neardup.core.sets import concatenate_ranges

PREFIX_BITS = 16
PREFIXES = 1 << PREFIX_BITS
PREFIX_SHIFT = np.uint64(64 - PREFIX_BITS)
HASH_SHIFT = np.uint64(32)
NUMBER_MASK = np.uint64((1 << 32) - 1)
STRIPE_POSTINGS = 1 << 22  # 32 MiB of keys; more only if one prefix has more
MERGED_RUNS = 8
MERGED_BITS = 3  # of sizes that are about the same
UNUSED_BITS = 5  # of a hash, for its place in a filter
FILTER_BYTES = 1 << 32 - UNUSED_BITS - 3  # 16 MB, of which only the parts in use take memory

Keys = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.uint32]
PassageHashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Filter = npt.NDArray[np.uint8]
NO_KEYS: Keys = np.empty(0, np.uint64)
Row = tuple[int, PassageHashes]  # a story's number and its distinct hashes
Range = tuple[int, int]
Ranges = Sequence[Range]


def make_keys(rows: Sequence[Row]) -> Keys:
    """The sorted keys of some stories' postings."""
    if not rows:
        return np.empty(0, np.uint64)
    hashes = np.concatenate([hashes for _, hashes in rows]).astype(np.uint64)
    numbers = np.repeat(np.array([number for number, _ in rows], np.uint64), [len(hashes) for _, hashes in rows])
    return np.sort(hashes << HASH_SHIFT | numbers)


def merge_keys(runs: Sequence[Keys]) -> Keys:
    """Several sorted arrays of keys as one.  numpy's stable sort is a timsort, which merges runs."""
    return np.sort(np.concatenate([np.empty(0, np.uint64), *runs]), kind="stable")


def get_numbers(keys: Keys) -> Numbers:
    """The number of each key."""
    return (keys & NUMBER_MASK).astype(np.uint32)


def get_hashes(keys: Keys) -> PassageHashes:
    """The hash of each key."""
    return (keys >> HASH_SHIFT).astype(np.uint32)


@in_c(native.encode)
def encode(keys: Keys, coding: Coding, buckets: range, preceding: int) -> tuple[Offsets, Bytes]:
    """How many postings precede each of some buckets (buckets,), and their sorted keys as bytes of a segment.

    `preceding` postings precede the first of the buckets.
    Raises ValueError for keys of other buckets or not in their order, and for a number that the coding has no room for.
    """
    bucket_of = (keys >> np.uint64(64 - coding.bucket_bits)).astype(np.int64)
    edges = np.searchsorted(bucket_of, np.arange(buckets.start, buckets.stop + 1))
    if edges[0] > 0 or edges[-1] < len(keys) or (keys[1:] < keys[:-1]).any():
        raise ValueError("the keys are of other buckets, or not in their order")
    hashes, numbers = get_hashes(keys).astype(np.int64), get_numbers(keys).astype(np.int64) - coding.first
    if (numbers >> coding.number_bits).any():
        raise ValueError("the coding has no room for a number")
    heads, parts = hashes >> coding.low_bits & coding.heads - 1, _locate(edges + preceding, coding, buckets.start)
    bits = np.zeros(8 * coding.size(buckets, preceding, len(keys)), np.uint8)
    bits[(parts.heads[parts.owners] + parts.nth + heads)[~parts.has_table[parts.owners]]] = 1
    for bucket in np.flatnonzero(parts.has_table):
        table = np.searchsorted(heads[edges[bucket] : edges[bucket + 1]], np.arange(coding.heads)).astype("<u4")
        bits[parts.heads[bucket] :][: coding.table_bits] = np.unpackbits(table.view(np.uint8), bitorder="little")
    for bit in range(coding.low_bits):
        bits[parts.lows + bit] = hashes >> bit & 1
    for bit in range(coding.number_bits):
        bits[parts.numbers + bit] = numbers >> bit & 1
    return (edges[:-1] + preceding).astype(np.uint32), np.packbits(bits, bitorder="little")


@in_c(native.decode)
def decode(content: Bytes, coding: Coding, first_bucket: int, offsets: Offsets) -> Keys:
    """The keys of the buckets from `first_bucket` on; `offsets` (buckets + 1,) are theirs and the next one's.

    Raises ValueError for offsets that descend or do not fit `content`, for heads that do not fit their bucket, and for
    a number of more than 32 bits.
    """
    edges = offsets.astype(np.int64)
    counts, buckets = np.diff(edges), range(first_bucket, first_bucket + len(edges) - 1)
    if (counts < 0).any() or len(content) != coding.size(buckets, int(edges[0]), int(counts.sum())):
        raise ValueError("the offsets of the buckets contradict their content")
    parts, bits = _locate(edges, coding, first_bucket), np.unpackbits(content, bitorder="little").astype(np.int64)
    heads = _read_heads(bits, parts, coding)
    lows, numbers = np.zeros(len(heads), np.int64), np.full(len(heads), coding.first, np.int64)
    for bit in range(coding.low_bits):
        lows |= bits[parts.lows + bit] << bit
    for bit in range(coding.number_bits):
        numbers += bits[parts.numbers + bit] << bit
    if (numbers >> 32).any():
        raise ValueError("what is read is no number of a story")
    hashes = (first_bucket + parts.owners << coding.head_bits | heads) << coding.low_bits | lows
    return hashes.astype(np.uint64) << HASH_SHIFT | numbers.astype(np.uint64)


class _Parts(NamedTuple):
    """Where the parts of some buckets begin, as bits of the bytes of all."""

    counts: Counts  # (buckets,): their postings
    has_table: npt.NDArray[np.bool_]  # (buckets,)
    heads: Counts  # (buckets,)
    owners: Counts  # (postings,): the bucket of each
    nth: Counts  # (postings,): which of its bucket's each is
    lows: Counts  # (postings,)
    numbers: Counts  # (postings,)


def _locate(edges: Counts, coding: Coding, first_bucket: int) -> _Parts:
    """The parts of the buckets from `first_bucket` on, which meet at `edges`."""
    counts, places = np.diff(edges), coding.place(np.arange(first_bucket, first_bucket + len(edges)), edges)
    heads, owners = 8 * (places[:-1] - places[0]), np.repeat(np.arange(len(counts)), counts)
    nth, lows = concatenate_ranges(np.zeros_like(counts), counts), heads + counts + coding.heads
    numbers = lows + counts * coding.low_bits
    return _Parts(
        counts,
        counts >= coding.table_bits,
        heads,
        owners,
        nth,
        lows[owners] + nth * coding.low_bits,
        numbers[owners] + nth * coding.number_bits,
    )


def _read_heads(bits: Counts, parts: _Parts, coding: Coding) -> Counts:
    """The head of each posting.  Raises ValueError."""
    heads, in_table = np.zeros(len(parts.owners), np.int64), parts.has_table[parts.owners]
    sizes = np.where(parts.has_table | (parts.counts == 0), 0, parts.counts + coding.heads)
    places = concatenate_ranges(parts.heads, sizes)
    set_bits = np.flatnonzero(bits[places])
    found = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[set_bits], minlength=len(sizes))
    if not np.array_equal(found, np.where(parts.has_table, 0, parts.counts)):
        raise ValueError("a bucket has not as many heads as postings")
    heads[~in_table] = places[set_bits] - (parts.heads[parts.owners] + parts.nth)[~in_table]
    for bucket in np.flatnonzero(parts.has_table):
        content = bits[parts.heads[bucket] :][: coding.table_bits].astype(np.uint8)
        table = np.packbits(content, bitorder="little").view("<u4").astype(np.int64)
        each = np.diff(table, append=parts.counts[bucket])
        if table[0] or (each < 0).any():
            raise ValueError("a table of heads descends")
        heads[parts.owners == bucket] = np.repeat(np.arange(coding.heads), each)
    if (heads >= coding.heads).any():
        raise ValueError("a bucket has not so many heads")
    return heads


def join_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Disjoint ranges in ascending order, adjacent ones as one."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and found[-1][1] + 1 == first:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def overlaps(ranges: Ranges, first: int, last: int) -> bool:
    """Whether `first` to `last` has a number in one of the ranges."""
    return any(start <= last and first <= stop for start, stop in ranges)


def are_held(ranges: Ranges, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """For each number (n,) whether it is in one of the ranges."""
    if not ranges:
        return np.zeros(len(numbers), np.bool_)
    firsts, lasts = np.array(ranges, np.int64).T
    at = np.searchsorted(firsts, numbers, side="right") - 1
    return np.asarray((at >= 0) & (numbers <= lasts[at]))


class Source(Protocol):
    """A segment, or a run of the tail."""

    @property
    def postings(self) -> int: ...

    def read_prefix_offsets(self) -> Offsets: ...

    def read_keys_of_prefixes(self, prefixes: range) -> Keys: ...


def read_stripes(sources: Sequence[Source]) -> Iterator[tuple[range, Keys]]:
    """All the prefixes in order, as ranges with their sorted keys of all sources."""
    preceding = sum(
        (source.read_prefix_offsets().astype(np.uint64) for source in sources), np.zeros(PREFIXES + 1, np.uint64)
    )
    start = 0
    while start < PREFIXES:
        limit = preceding[start] + np.uint64(STRIPE_POSTINGS)
        stop = max(int(np.searchsorted(preceding, limit, side="right")) - 1, start + 1)
        prefixes = range(start, stop)
        yield prefixes, merge_keys([source.read_keys_of_prefixes(prefixes) for source in sources])
        start = stop


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
        return get_numbers(self.keys[concatenate_ranges(places, counts)])

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


def select_keys(keys: Keys, hashes: PassageHashes) -> Keys:
    """Those of the sorted keys that have one of some distinct ascending hashes, in the same order."""
    return np.asarray(keys[concatenate_ranges(*find_keys(keys, hashes))])


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
