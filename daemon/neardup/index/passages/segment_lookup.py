"""Lookups in a segment, in compiled code that runs without the GIL, so that threads wait for the disk at once.

Blocks are read with pread: with 1,000,000 stories that takes a third of the time of a mapping's page faults, and no
memory.  A damaged or unreadable block is an answer, and no signal that ends the process.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.jit import LibraryFunction, compiled
from neardup.index.passages.checksums import BLOCK, Bytes, Checksums, checksum
from neardup.index.passages.postings import Coding, PassageHashes, get

_pread = LibraryFunction("pread", "intp", "intc", "voidptr", "uintp", "int64")

DIRECTORY = BLOCK  # where the directory begins
OFFSET_BYTES = 4  # of an entry of the directory

Counts = npt.NDArray[np.int64]


class SegmentBlocks(NamedTuple):
    """A segment's file, to be read by blocks.

    `verified` (blocks,) says which blocks after the header were what was written when they were read first.
    """

    descriptor: int
    coding: Coding
    postings: int
    postings_start: int
    checksums: Checksums
    verified: npt.NDArray[np.bool_]


class Window(NamedTuple):
    """Up to two adjacent blocks of a file: `blocks` (2,) are the first of them and the one after the last."""

    content: Bytes
    blocks: Counts


@compiled
def find(segment: SegmentBlocks, hashes: PassageHashes, places: Counts, counts: Counts) -> bool:
    """For each hash: where the numbers of the stories that have it begin in the file, and how many they are.

    Ascending hashes read a block of the directory once.  Of a bucket larger than a block only what a binary search
    needs is read.  False if a block is damaged.
    """
    coding, directory, postings = segment.coding, _window(), _window()
    low_bits, entry_bytes = 32 - coding.bucket_bits, coding.low_bytes + coding.number_bytes
    for n in range(len(hashes)):
        entry = DIRECTORY + OFFSET_BYTES * int(np.int64(hashes[n] >> np.uint32(low_bits)))
        at = _read(segment, entry, 2 * OFFSET_BYTES, directory)
        if at < 0:
            return False
        start = get(directory.content, at, OFFSET_BYTES)
        size = get(directory.content, at + OFFSET_BYTES, OFFSET_BYTES) - start
        if size < 0 or start + size > segment.postings:  # changed since it was verified
            return False
        bucket, low = segment.postings_start + start * entry_bytes, int(np.int64(hashes[n])) & (1 << low_bits) - 1
        if size * coding.low_bytes <= BLOCK:
            at = _read(segment, bucket, size * coding.low_bytes, postings) if size else 0
            if at < 0:
                return False
            first = _first_at_least(postings.content, at, coding.low_bytes, size, low)
            last = first
            while last < size and get(postings.content, at + last * coding.low_bytes, coding.low_bytes) == low:
                last += 1
        else:
            first = _first_in_blocks(segment, bucket, size, low, postings)
            last = _first_in_blocks(segment, bucket, size, low + 1, postings)
            if first < 0 or last < 0:
                return False
        places[n] = bucket + size * coding.low_bytes + first * coding.number_bytes
        counts[n] = last - first
    return True


@compiled
def read_numbers(segment: SegmentBlocks, places: Counts, counts: Counts, numbers: Numbers) -> bool:
    """Write the `counts` numbers that begin at each place to `numbers`, one after the other.  False if damaged."""
    size, window, written = segment.coding.number_bytes, _window(), 0
    for n in range(len(places)):
        for place in range(int(np.int64(places[n])), int(np.int64(places[n] + counts[n] * size)), size):
            at = _read(segment, place, size, window)
            if at < 0:
                return False
            numbers[written] = segment.coding.first + get(window.content, at, size)
            written += 1
    return True


@compiled
def _first_at_least(content: Bytes, bucket: int, width: int, size: int, low: int) -> int:
    """How many postings of a bucket, which begins at a place of `content`, have low bits less than `low`."""
    start, stop = 0, size
    while start < stop:
        middle = (start + stop) // 2
        if get(content, bucket + middle * width, width) < low:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _first_in_blocks(segment: SegmentBlocks, bucket: int, size: int, low: int, window: Window) -> int:
    """The same for a bucket larger than a block, which is read where it is looked at; -1 if damaged."""
    width, start, stop = segment.coding.low_bytes, 0, size
    while start < stop:
        middle = (start + stop) // 2
        at = _read(segment, bucket + middle * width, width, window)
        if at < 0:
            return -1
        if get(window.content, at, width) < low:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _window() -> Window:
    return Window(np.empty(2 * BLOCK, np.uint8), np.zeros(2, np.int64))


@compiled
def _read(segment: SegmentBlocks, start: int, size: int, window: Window) -> int:
    """Let a window hold some bytes of the file, at most a block; returns their place in it, -1 if damaged."""
    blocks = window.blocks
    first, stop = start // BLOCK, (start + size - 1) // BLOCK + 1
    if first < blocks[0] or stop > blocks[1]:
        blocks[0] = blocks[1] = 0
        length = (stop - first) * BLOCK
        if _pread(segment.descriptor, window.content.ctypes, length, first * BLOCK) != length:
            return -1
        for n in range(first, stop):
            if not segment.verified[n - 1]:
                if checksum(window.content[(n - first) * BLOCK : (n - first + 1) * BLOCK]) != segment.checksums[n - 1]:
                    return -1
                segment.verified[n - 1] = True
        blocks[0], blocks[1] = first, stop
    return int(np.int64(start - blocks[0] * BLOCK))
