"""Postings in memory, sorted as keys: their coding in a segment, ranges of their numbers, and reading many in order.

A *posting* is a passage hash and the number of a story that has it.  A key is the hash of a posting in the upper half
of 64 bits and the number in the lower half.  The hashes with the same top PREFIX_BITS bits share a *prefix*; buckets of
any segment are parts of one prefix.  All postings of several sources are read in the order of their hashes, a stripe of
prefixes at a time, in bounded memory.

Ranges of story numbers are inclusive, ascending and disjoint.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.core.native.segments import Bytes, Coding

PREFIX_BITS = 16
PREFIXES = 1 << PREFIX_BITS
PREFIX_SHIFT = np.uint64(64 - PREFIX_BITS)
HASH_SHIFT = np.uint64(32)
NUMBER_MASK = np.uint64((1 << 32) - 1)
STRIPE_POSTINGS = 1 << 22  # 32 MiB of keys; more only if one prefix has more

Keys = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.uint32]
PassageHashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
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


def list_places(starts: Counts, counts: Counts) -> Counts:
    """The places of the `counts` items from each start on, one after the other."""
    firsts = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return firsts + np.arange(len(firsts))


@in_c(native.encode)
def encode(keys: Keys, coding: Coding, buckets: range) -> tuple[Offsets, Bytes]:
    """How many of the sorted keys of some buckets precede each bucket (buckets,), and the keys as bytes of a segment.

    Of each hash the low bytes are written, which may have bits of the bucket, too.
    Raises ValueError for keys of other buckets or not in their order, and for those that the coding has no room for.
    """
    low_bits = 32 - coding.bucket_bits
    bucket_of = (keys >> np.uint64(32 + low_bits)).astype(np.int64)
    edges = np.searchsorted(bucket_of, np.arange(buckets.start, buckets.stop + 1))
    if edges[0] > 0 or edges[-1] < len(keys) or (np.diff(bucket_of) < 0).any():
        raise ValueError("the keys are of other buckets, or not in their order")
    hashes, numbers = get_hashes(keys).astype(np.int64), get_numbers(keys).astype(np.int64) - coding.first
    if ((hashes & (1 << low_bits) - 1) >> 8 * coding.low_bytes).any() or (numbers >> 8 * coding.number_bytes).any():
        raise ValueError("the coding has no room for a hash or a number")
    content = np.empty(len(keys) * (coding.low_bytes + coding.number_bytes), np.uint8)
    low_places, number_places = _locate(edges, coding)
    for byte in range(coding.low_bytes):
        content[low_places + byte] = hashes >> 8 * byte & 0xFF
    for byte in range(coding.number_bytes):
        content[number_places + byte] = numbers >> 8 * byte & 0xFF
    return edges[:-1].astype(np.uint32), content


@in_c(native.decode)
def decode(content: Bytes, coding: Coding, first_bucket: int, offsets: Offsets) -> Keys:
    """The sorted keys of the buckets from `first_bucket` on; `offsets` (buckets + 1,) are theirs and the next one's.

    Raises ValueError for offsets that descend or do not fit `content`, and for a number of more than 32 bits.
    """
    edges, low_bits = offsets.astype(np.int64), 32 - coding.bucket_bits
    sizes = np.diff(edges)
    if (sizes < 0).any() or len(content) != sizes.sum() * (coding.low_bytes + coding.number_bytes):
        raise ValueError("the offsets of the buckets contradict their content")
    low_places, number_places = _locate(edges, coding)
    lows, numbers = np.zeros(len(low_places), np.int64), np.full(len(low_places), coding.first, np.int64)
    for byte in range(coding.low_bytes):
        lows |= content[low_places + byte].astype(np.int64) << 8 * byte
    for byte in range(coding.number_bytes):
        numbers += content[number_places + byte].astype(np.int64) << 8 * byte
    if (numbers >> 32).any():
        raise ValueError("what is read is no number of a story")
    hashes = np.repeat(np.arange(first_bucket, first_bucket + len(sizes)), sizes) << low_bits | lows
    return hashes.astype(np.uint64) << HASH_SHIFT | numbers.astype(np.uint64)


def _locate(edges: Counts, coding: Coding) -> tuple[Counts, Counts]:
    """Where the low bits and the number of each posting begin in the bytes of some buckets, which meet at `edges`."""
    starts, sizes = edges[:-1] - edges[0], np.diff(edges)
    bucket, size = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    nth, content = np.arange(len(bucket)) - bucket, bucket * (coding.low_bytes + coding.number_bytes)
    return content + nth * coding.low_bytes, content + size * coding.low_bytes + nth * coding.number_bytes


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

    def prefix_offsets(self) -> Offsets: ...

    def keys_of_prefixes(self, prefixes: range) -> Keys: ...


def read_stripes(sources: Sequence[Source]) -> Iterator[tuple[range, Keys]]:
    """All the prefixes in order, as ranges with their sorted keys of all sources."""
    preceding = sum(
        (source.prefix_offsets().astype(np.uint64) for source in sources), np.zeros(PREFIXES + 1, np.uint64)
    )
    start = 0
    while start < PREFIXES:
        limit = preceding[start] + np.uint64(STRIPE_POSTINGS)
        stop = max(int(np.searchsorted(preceding, limit, side="right")) - 1, start + 1)
        prefixes = range(start, stop)
        yield prefixes, merge_keys([source.keys_of_prefixes(prefixes) for source in sources])
        start = stop
