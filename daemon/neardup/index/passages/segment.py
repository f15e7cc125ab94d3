"""An open segment: its parts are verified before they are used, by checksum.

Lookups read blocks, without the GIL, so that threads wait for the disk at once.  A damaged or unreadable block is an
answer, and no signal that ends the process, as it would be in a mapping of the file.
"""

import os
import weakref
from bisect import bisect_left, bisect_right
from functools import cached_property
from pathlib import Path

import numpy as np
import xxhash

from neardup.core.candidates.banding import Numbers
from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.core.native.segments import Bytes, Checksums, Coding, SegmentBlocks
from neardup.errors import PassagesDamaged
from neardup.index.passages.layout import BLOCK, DIRECTORY_START, OFFSET, HeaderDamaged, block_checksums, read_header
from neardup.index.passages.postings import (
    PREFIX_BITS,
    PREFIXES,
    Counts,
    Keys,
    Offsets,
    PassageHashes,
    decode,
)

READ_BYTES = 1 << 24  # at a time, by `verify`


class Segment:
    """A complete segment, open for reading.

    The file stays readable after it is removed from its folder, and is closed when the segment is collected.
    Raises HeaderDamaged if it is truncated or its header is damaged, and Fatal for another format.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self._name = path.name
        self.header = read_header(os.pread(self._descriptor, BLOCK, 0))
        size = os.fstat(self._descriptor).st_size
        if size != self.header.file_bytes:
            raise HeaderDamaged(f"it has {size} of {self.header.file_bytes} bytes")
        os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        self._coding = Coding(
            self.header.bucket_bits, self.header.low_bytes, self.header.number_bytes, self.header.first
        )

    def damaged(self) -> PassagesDamaged:
        """The error that names this segment."""
        return PassagesDamaged(self._name, self.header.first, self.header.last)

    @property
    def postings(self) -> int:
        """How many postings it has."""
        return self.header.postings

    @cached_property
    def _checksums(self) -> Checksums:
        start, stop = self.header.checksums_start, self.header.file_bytes
        content = self._read(start, stop - start)
        if xxhash.xxh64_intdigest(content.data) != self.header.checksums:
            raise self.damaged()
        return content.view("<u8")[: start // BLOCK - 1]

    @cached_property
    def _blocks(self) -> SegmentBlocks:
        return SegmentBlocks(
            self._descriptor,
            self._coding,
            self.header.postings,
            self.header.postings_start,
            self._checksums,
            np.zeros(len(self._checksums), np.bool_),
        )

    def find(self, hashes: PassageHashes) -> tuple[Counts, Counts]:
        """For each hash: the place of the first story that has it, and how many stories have it.

        Ascending hashes take the least time.  Raises PassagesDamaged.
        """
        found = find(self._blocks, hashes)
        if found is None:
            raise self.damaged()
        return found

    def numbers(self, places: Counts, counts: Counts) -> Numbers:
        """The `counts` numbers of stories from each place on, one after the other.  Raises PassagesDamaged."""
        numbers = read_numbers(self._blocks, places, counts)
        if numbers is None:
            raise self.damaged()
        return numbers

    def prefix_offsets(self) -> Offsets:
        """How many postings precede each prefix, and at last their number: (PREFIXES + 1,)."""
        step = 1 << self.header.bucket_bits - PREFIX_BITS
        a_read = PREFIXES // 16
        parts = [self._directory(n * a_read * step, a_read * step)[:-1:step] for n in range(PREFIXES // a_read)]
        return np.concatenate([*parts, np.array([self.header.postings], np.uint32)])

    def keys_of_prefixes(self, prefixes: range) -> Keys:
        """The sorted keys of a range of prefixes.  Raises PassagesDamaged."""
        shift = self.header.bucket_bits - PREFIX_BITS
        offsets = self._directory(prefixes.start << shift, len(prefixes) << shift)
        start, stop, size = int(offsets[0]), int(offsets[-1]), self._coding.low_bytes + self._coding.number_bytes
        if not start <= stop <= self.header.postings:
            raise self.damaged()
        content = self._verified(self.header.postings_start + start * size, (stop - start) * size)
        try:
            return decode(content, self._coding, prefixes.start << shift, offsets)
        except ValueError as error:
            raise self.damaged() from error

    def verify(self) -> None:
        """Read the whole file.  Raises PassagesDamaged."""
        for start in range(DIRECTORY_START, self.header.checksums_start, READ_BYTES):
            self._verified(start, min(READ_BYTES, self.header.checksums_start - start))

    def _directory(self, first: int, buckets: int) -> Offsets:
        content = self._verified(DIRECTORY_START + first * OFFSET.itemsize, (buckets + 1) * OFFSET.itemsize)
        return content.view(OFFSET)

    def _verified(self, start: int, size: int) -> Bytes:
        first, stop = start // BLOCK, -(-(start + size) // BLOCK)
        content = self._read(first * BLOCK, (stop - first) * BLOCK)
        if not np.array_equal(block_checksums(content), self._checksums[first - 1 : stop - 1]):
            raise self.damaged()
        return content[start - first * BLOCK :][:size]

    def _read(self, start: int, size: int) -> Bytes:
        content = np.empty(size, np.uint8)
        view, at = content.data, start
        while view:
            try:
                read = os.preadv(self._descriptor, [view], at)
            except OSError as error:
                raise self.damaged() from error
            if not read:
                raise self.damaged()
            view, at = view[read:], at + read
        return content


@in_c(native.find)
def find(segment: SegmentBlocks, hashes: PassageHashes) -> tuple[Counts, Counts] | None:
    """For each hash: where the numbers of the stories that have it begin in the file, and how many they are.

    Ascending hashes read a block of the directory once.  Of a bucket larger than a block only what a binary search
    needs is read.  None if a block is damaged.
    """
    places, counts = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    directory, postings = _Window(segment), _Window(segment)
    try:
        for nth, passage in enumerate(hashes.tolist()):
            places[nth], counts[nth] = _find(segment, passage, directory, postings)
    except _Unreadable:
        return None
    return places, counts


def _find(segment: SegmentBlocks, passage: int, directory: "_Window", postings: "_Window") -> tuple[int, int]:
    coding, low_bits = segment.coding, 32 - segment.coding.bucket_bits
    entry = DIRECTORY_START + OFFSET.itemsize * (passage >> low_bits)
    start, stop = directory.integer(entry, OFFSET.itemsize), directory.integer(entry + OFFSET.itemsize, OFFSET.itemsize)
    if not start <= stop <= segment.postings:
        raise _Unreadable
    bucket, size = segment.postings_start + start * (coding.low_bytes + coding.number_bytes), stop - start
    if 0 < size * coding.low_bytes <= BLOCK:
        postings.hold(bucket, size * coding.low_bytes)

    mask = (1 << low_bits) - 1

    def low_of(nth: int) -> int:
        """The low bytes may have bits of the bucket, too."""
        return postings.integer(bucket + nth * coding.low_bytes, coding.low_bytes) & mask

    low = passage & mask
    first = bisect_left(range(size), low, key=low_of)
    last = bisect_right(range(size), low, key=low_of)
    return bucket + size * coding.low_bytes + first * coding.number_bytes, last - first


@in_c(native.read_numbers)
def read_numbers(segment: SegmentBlocks, places: Counts, counts: Counts) -> Numbers | None:
    """The `counts` numbers that begin at each place of the file, one after the other.  None if a block is damaged."""
    size, window, numbers = segment.coding.number_bytes, _Window(segment), list[int]()
    try:
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            for at in range(place, place + count * size, size):
                numbers.append(segment.coding.first + window.integer(at, size))
                if numbers[-1] >> 32:
                    return None
    except _Unreadable:
        return None
    return np.array(numbers, np.uint32)


class _Unreadable(Exception):
    """A block is damaged, or contradicts the header."""


class _Window:
    """Up to two adjacent blocks of a segment, which are verified when they are first read."""

    def __init__(self, segment: SegmentBlocks) -> None:
        self._segment, self._content = segment, b""
        self._first = self._stop = 0  # blocks of the file

    def integer(self, place: int, size: int) -> int:
        """The little-endian integer of `size` bytes at a place of the file."""
        self.hold(place, size)
        at = place - self._first * BLOCK
        return int.from_bytes(self._content[at : at + size], "little")

    def hold(self, place: int, size: int) -> None:
        """Read these bytes of the file, 1 to BLOCK, unless the window holds them.  Raises _Unreadable."""
        first, stop = place // BLOCK, (place + size - 1) // BLOCK + 1
        if first < self._first or stop > self._stop:
            self._first = self._stop = 0
            self._content = self._verified(first, stop)
            self._first, self._stop = first, stop

    def _verified(self, first: int, stop: int) -> bytes:
        segment = self._segment
        if first < 1 or stop - 1 > len(segment.checksums):
            raise _Unreadable
        try:
            content = os.pread(segment.descriptor, (stop - first) * BLOCK, first * BLOCK)
        except OSError as error:
            raise _Unreadable from error
        if len(content) != (stop - first) * BLOCK:
            raise _Unreadable
        for block in range(first, stop):
            if not segment.verified[block - 1]:
                start = (block - first) * BLOCK
                if xxhash.xxh64_intdigest(content[start : start + BLOCK]) != segment.checksums[block - 1]:
                    raise _Unreadable
                segment.verified[block - 1] = True
        return content
