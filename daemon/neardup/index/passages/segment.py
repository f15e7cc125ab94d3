"""A segment: an immutable file of sorted postings; its layout, reading it and writing it.

A *bucket* is the postings whose hashes have the same top `bucket_bits` bits.  The file has these parts, each filled up
with zeros to a multiple of BLOCK bytes:

    header      one block: its length in 4 bytes, the Header as JSON, zeros, the XXH64 of what precedes in 8 bytes
    directory   for each bucket, how many postings precede it, and at last the number of postings: uint32
    postings    for each bucket: the heads, the low bits of the hash of each posting, the number of each less `first`
    checksums   the XXH64 of each block of directory and postings: uint64

Integers are little-endian; in a bucket they take as many bits as they need, from the lowest bit of a byte on.  The
*head* of a hash is the `head_bits` that follow its bucket's, at most 6, so a bucket of a large segment has about as
many postings as heads.  Its heads are coded by Elias (JACM 1974) and Fano: a bit of 1 for each posting of a head and
then a 0, for each head in turn.  In a bucket whose heads have room for a table, because many stories share a hash, they
are one: how many postings precede each head, uint32.  So 16 million stories take 3.5 bytes a posting.  A bucket begins
at a byte, which follows from how many buckets and postings precede it (Coding.place), and has 32 to 64 postings, so a
lookup reads one entry of the directory and one block of postings.

The parts of an open segment are verified by checksum before they are used.  Lookups read blocks, without the GIL, so
that threads wait for the disk at once.  A damaged or unreadable block is an answer, and no signal that ends the
process, as it would be in a mapping of the file.  A segment is written from its postings in ascending order, a range of
prefixes at a time.
"""

import json
import os
import re
import stat
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np
import xxhash
from msgspec import Struct
from msgspec.structs import asdict, replace

from neardup.core.candidates.banding import Numbers
from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.core.native.segments import ENTRY_BITS, Bytes, Checksums, Coding, SegmentBlocks
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages.postings import (
    PREFIX_BITS,
    PREFIXES,
    Counts,
    Keys,
    Offsets,
    PassageHashes,
    decode,
    encode,
    get_numbers,
)
from neardup.sqlite import sync_folder

FORMAT = 2
BLOCK = native.BLOCK  # bytes; what a disk reads at least
MAX_BUCKET_BITS, MAX_HEAD_BITS = 25, 6
DIRECTORY_START = BLOCK
OFFSET = np.dtype("<u4")  # of a posting, in the directory
LENGTH_BYTES, CHECKSUM_BYTES = 4, 8
READ_BYTES = 1 << 24  # at a time, by `verify`
READ_AND_WRITE = 0o660  # what the mode of a segment has of its folder's
PARTIAL = ".partial"  # of the name of a segment while it is written
SUFFIX = ".passages"
NAME = re.compile(r"(\d{8})-(\d{10})-(\d{10})\.passages")


class HeaderDamaged(Exception):
    """The header is not what was written."""


class Header(Struct, frozen=True):
    """What a segment says of itself.  It holds the stories `first` to `last`; `stories` counts those with postings.

    `made_at` is the number of the ledger's last change when the segment was made, which lacks what had been removed by
    then.
    """

    ledger: str
    algorithm: str
    made_at: int
    first: int
    last: int
    stories: int
    postings: int
    bucket_bits: int
    head_bits: int
    number_bits: int
    checksums: int  # the XXH64 of that part
    format: int = FORMAT

    @property
    def coding(self) -> Coding:
        return Coding(self.bucket_bits, self.head_bits, self.number_bits, self.first)

    @property
    def postings_start(self) -> int:
        return DIRECTORY_START + round_up(((1 << self.bucket_bits) + 1) * OFFSET.itemsize)

    @property
    def checksums_start(self) -> int:
        return self.postings_start + round_up(self.coding.place(1 << self.bucket_bits, self.postings))

    @property
    def file_bytes(self) -> int:
        return self.checksums_start + round_up((self.checksums_start // BLOCK - 1) * CHECKSUM_BYTES)


def round_up(size: int) -> int:
    """The least multiple of BLOCK that is not less than `size`."""
    return -(-size // BLOCK) * BLOCK


def choose_bits(postings: int, span: int) -> tuple[int, int, int]:
    """The bits of a bucket, a head and a number in a segment with at most so many postings of `span` numbers."""
    bucket_bits = min(max(postings.bit_length() - MAX_HEAD_BITS, PREFIX_BITS), MAX_BUCKET_BITS)
    head_bits = min(max(postings.bit_length() - bucket_bits, 0), MAX_HEAD_BITS)
    return bucket_bits, head_bits, max((span - 1).bit_length(), 1)


def estimate_bytes(postings: int, span: int) -> int:
    """The size of a segment with so many postings of `span` numbers, in bytes."""
    return Header("", "", 0, 1, span, 0, postings, *choose_bits(postings, span), 0).file_bytes


def write_header(header: Header) -> bytes:
    """The header as BLOCK bytes."""
    text = json.dumps(asdict(header)).encode()
    content = (len(text).to_bytes(LENGTH_BYTES, "little") + text).ljust(BLOCK - CHECKSUM_BYTES, b"\0")
    return content + xxhash.xxh64_intdigest(content).to_bytes(CHECKSUM_BYTES, "little")


def read_header(block: bytes) -> Header:
    """The header in BLOCK bytes.  Raises HeaderDamaged, and Fatal for a format of another version of neardup."""
    content, found = block[:-CHECKSUM_BYTES], int.from_bytes(block[-CHECKSUM_BYTES:], "little")
    if len(block) != BLOCK or xxhash.xxh64_intdigest(content) != found:
        raise HeaderDamaged("its header is damaged")
    fields = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")])
    if fields["format"] != FORMAT:
        raise Fatal(
            f"the passage index has format {fields['format']}; this neardup reads format {FORMAT}; "
            "move its folder away, and the next run makes it again"
        )
    return Header(**fields)


@in_c(native.block_checksums)
def block_checksums(blocks: Bytes) -> Checksums:
    """Bytes (n * BLOCK,) -> the XXH64 (https://xxhash.com, seed 0) of each block: (n,)."""
    return np.array([xxhash.xxh64_intdigest(block.data) for block in blocks.reshape(-1, BLOCK)], np.uint64)


def make_name(generation: int, first: int, last: int) -> str:
    """The name of a segment; of two that hold the same stories, the one of the higher generation replaces the other."""
    return f"{generation:08}-{first:010}-{last:010}{SUFFIX}"


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

    def explain_damage(self) -> PassagesDamaged:
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
            raise self.explain_damage()
        return content.view("<u8")[: start // BLOCK - 1]

    @cached_property
    def _blocks(self) -> SegmentBlocks:
        return SegmentBlocks(
            self._descriptor,
            self.header.coding,
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
            raise self.explain_damage()
        return found

    def numbers(self, places: Counts, counts: Counts) -> Numbers:
        """The `counts` numbers of stories from each place on, one after the other.  Raises PassagesDamaged."""
        numbers = read_numbers(self._blocks, places, counts)
        if numbers is None:
            raise self.explain_damage()
        return numbers

    def read_prefix_offsets(self) -> Offsets:
        """How many postings precede each prefix, and at last their number: (PREFIXES + 1,)."""
        step = 1 << self.header.bucket_bits - PREFIX_BITS
        each = PREFIXES // 16  # prefixes read at a time
        parts = [self._directory(first * step, each * step)[:-1:step] for first in range(0, PREFIXES, each)]
        return np.concatenate([*parts, np.array([self.header.postings], np.uint32)])

    def read_keys_of_prefixes(self, prefixes: range) -> Keys:
        """The sorted keys of a range of prefixes.  Raises PassagesDamaged."""
        coding, shift = self.header.coding, self.header.bucket_bits - PREFIX_BITS
        buckets = range(prefixes.start << shift, prefixes.stop << shift)
        offsets = self._directory(buckets.start, len(buckets))
        start, stop = int(offsets[0]), int(offsets[-1])
        if not start <= stop <= self.header.postings:
            raise self.explain_damage()
        place, size = coding.place(buckets.start, start), coding.size(buckets, start, stop - start)
        content = self._read_verified(self.header.postings_start + place, size)
        try:
            return decode(content, coding, buckets.start, offsets)
        except ValueError as error:
            raise self.explain_damage() from error

    def verify(self) -> None:
        """Read the whole file.  Raises PassagesDamaged."""
        for start in range(DIRECTORY_START, self.header.checksums_start, READ_BYTES):
            self._read_verified(start, min(READ_BYTES, self.header.checksums_start - start))

    def _directory(self, first: int, buckets: int) -> Offsets:
        content = self._read_verified(DIRECTORY_START + first * OFFSET.itemsize, (buckets + 1) * OFFSET.itemsize)
        return content.view(OFFSET)

    def _read_verified(self, start: int, size: int) -> Bytes:
        first, stop = start // BLOCK, -(-(start + size) // BLOCK)
        content = self._read(first * BLOCK, (stop - first) * BLOCK)
        if not np.array_equal(block_checksums(content), self._checksums[first - 1 : stop - 1]):
            raise self.explain_damage()
        return content[start - first * BLOCK :][:size]

    def _read(self, start: int, size: int) -> Bytes:
        content = np.empty(size, np.uint8)
        view, at = content.data, start
        while view:
            try:
                read = os.preadv(self._descriptor, [view], at)
            except OSError as error:
                raise self.explain_damage() from error
            if not read:
                raise self.explain_damage()
            view, at = view[read:], at + read
        return content


@in_c(native.find)
def find(segment: SegmentBlocks, hashes: PassageHashes) -> tuple[Counts, Counts] | None:
    """For each hash: the bit of the file where the numbers of the stories that have it begin, and how many they are.

    Ascending hashes read a block of the directory once.  Of low bits only what a binary search needs is read.  None if
    a block is damaged.
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
    coding = segment.coding
    nth = passage >> 32 - coding.bucket_bits
    entry = DIRECTORY_START + OFFSET.itemsize * nth
    preceding, end = (directory.integer(entry + at, OFFSET.itemsize) for at in (0, OFFSET.itemsize))
    if not preceding <= end <= segment.postings:
        raise _Unreadable
    size, bucket = end - preceding, 8 * (segment.postings_start + coding.place(nth, preceding))
    lows = bucket + size + coding.heads
    numbers = lows + size * coding.low_bits
    if not size:
        return numbers, 0
    head, low = passage >> coding.low_bits & coding.heads - 1, passage & (1 << coding.low_bits) - 1
    start, stop = _find_head(coding, head, bucket, size, postings)

    def low_of(nth: int) -> int:
        return postings.bits(lows + nth * coding.low_bits, coding.low_bits)

    first = bisect_left(range(size), low, start, stop, key=low_of)
    last = bisect_right(range(size), low, start, stop, key=low_of)
    return numbers + first * coding.number_bits, last - first


def _find_head(coding: Coding, head: int, bucket: int, size: int, postings: "_Window") -> tuple[int, int]:
    """Which postings have a head, from and to, of the `size` of a bucket, which begins at a bit of the file."""
    if size >= coding.table_bits:
        table = postings.bits(bucket, coding.table_bits) | size << coding.table_bits
        start, stop = (table >> ENTRY_BITS * entry & (1 << ENTRY_BITS) - 1 for entry in (head, head + 1))
    else:
        heads = postings.bits(bucket, size + coding.heads)
        zeros = [bit for bit in range(size + coding.heads) if not heads >> bit & 1]
        if head >= len(zeros):
            raise _Unreadable
        start, stop = zeros[head - 1] - (head - 1) if head else 0, zeros[head] - head
    if not start <= stop <= size:
        raise _Unreadable
    return start, stop


@in_c(native.read_numbers)
def read_numbers(segment: SegmentBlocks, places: Counts, counts: Counts) -> Numbers | None:
    """The `counts` numbers that begin at each bit of the file, one after the other.  None if a block is damaged."""
    size, window, numbers = segment.coding.number_bits, _Window(segment), list[int]()
    try:
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            for at in range(place, place + count * size, size):
                numbers.append(segment.coding.first + window.bits(at, size))
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
        self._hold(place, size)
        at = place - self._first * BLOCK
        return int.from_bytes(self._content[at : at + size], "little")

    def bits(self, place: int, size: int) -> int:
        """The integer of `size` bits at a bit of the file."""
        first, stop = place // 8, (place + size - 1) // 8 + 1
        return self.integer(first, stop - first) >> place % 8 & (1 << size) - 1

    def _hold(self, place: int, size: int) -> None:
        """Read these bytes of the file, 1 to BLOCK, unless the window holds them.  Raises _Unreadable."""
        first, stop = place // BLOCK, (place + size - 1) // BLOCK + 1
        if first < self._first or stop > self._stop:
            self._first = self._stop = 0
            self._content = self._read_verified(first, stop)
            self._first, self._stop = first, stop

    def _read_verified(self, first: int, stop: int) -> bytes:
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


def write_segment(path: Path, header: Header, stripes: Iterable[tuple[range, Keys]]) -> None:
    """Write a segment of `stripes`, which have the sorted keys of every prefix once, in order.

    The file appears under its name when this returns, complete and synced to disk with its folder; until then it has
    the suffix PARTIAL.  `header` has the coding, the range of numbers and the most postings that there may be.
    """
    partial, shift, postings = path.with_name(path.name + PARTIAL), header.bucket_bits - PREFIX_BITS, 0
    held = np.zeros(header.last - header.first + 1, np.bool_)
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.fchmod(descriptor, stat.S_IMODE(partial.parent.stat().st_mode) & READ_AND_WRITE)
        directory, content = _Part(descriptor, DIRECTORY_START), _Part(descriptor, header.postings_start)
        for prefixes, keys in stripes:
            buckets = range(prefixes.start << shift, prefixes.stop << shift)
            offsets, coded = encode(keys, header.coding, buckets, postings)
            directory.append(offsets.astype(OFFSET).view(np.uint8))
            content.append(coded)
            held[get_numbers(keys) - np.uint32(header.first)] = True
            postings += len(keys)
        directory.append(np.array([postings], OFFSET).view(np.uint8))
        checksums = np.concatenate([directory.finish(), content.finish()]).astype("<u8").view(np.uint8)
        trailer = _pad_block(checksums)
        stories, checksum = int(np.count_nonzero(held)), xxhash.xxh64_intdigest(trailer.data)
        header = replace(header, postings=postings, stories=stories, checksums=checksum)
        _write(descriptor, trailer, header.checksums_start)
        _write(descriptor, np.frombuffer(write_header(header), np.uint8), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(path)
    sync_folder(path.parent)


class _Part:
    """A part of the file, written block by block from `start` on."""

    def __init__(self, descriptor: int, start: int) -> None:
        self._descriptor, self._at = descriptor, start
        self._rest = np.empty(0, np.uint8)
        self._checksums: list[Checksums] = []

    def append(self, content: Bytes) -> None:
        content = np.concatenate([self._rest, content])
        whole = len(content) // BLOCK * BLOCK
        self._write(content[:whole])
        self._rest = content[whole:].copy()

    def finish(self) -> Checksums:
        """Fill up and write the last block.  Returns the checksums of all blocks of this part."""
        self._write(_pad_block(self._rest))
        return np.concatenate(self._checksums)

    def _write(self, blocks: Bytes) -> None:
        self._checksums.append(block_checksums(blocks))
        _write(self._descriptor, blocks, self._at)
        self._at += len(blocks)


def _pad_block(content: Bytes) -> Bytes:
    return np.concatenate([content, np.zeros(round_up(len(content)) - len(content), np.uint8)])


def _write(descriptor: int, content: Bytes, at: int) -> None:
    view = content.data
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
