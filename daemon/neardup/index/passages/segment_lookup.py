"""Lookups in a segment, in compiled code that runs without the GIL, so that threads wait for the disk at once.

A block is read with pread and verified the first time, so that a damaged or unreadable one is an answer and no signal
that ends the process.  From then on it is read in the mapping, which costs no system call.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.core import types

from neardup.core.candidates.banding import Numbers
from neardup.core.jit import compiled
from neardup.index.passages.checksums import BLOCK, Bytes, Checksums, checksum
from neardup.index.passages.postings import Coding, PassageHashes, get

_pread_signature = types.intp(types.intc, types.voidptr, types.uintp, types.int64)
_pread: Callable[..., int] = types.ExternalFunction("pread", _pread_signature)

DIRECTORY = BLOCK  # where the directory begins
OFFSET_BYTES = 4  # of an entry of the directory

Counts = npt.NDArray[np.int64]


class MappedSegment(NamedTuple):
    """A segment's file and mapping.  `verified` (blocks,) says which blocks after the header have been verified."""

    descriptor: int
    content: Bytes
    coding: Coding
    postings: int
    postings_start: int
    checksums: Checksums
    verified: npt.NDArray[np.bool_]


@compiled
def find(segment: MappedSegment, hashes: PassageHashes, places: Counts, counts: Counts) -> bool:
    """For each hash: where the numbers of the stories that have it begin in the file, and how many they are.

    Of a bucket larger than a block only what a binary search needs is read.  False if a block is damaged.
    """
    coding, block = segment.coding, np.empty(BLOCK, np.uint8)
    low_bits, entry_bytes = 32 - coding.bucket_bits, coding.low_bytes + coding.number_bytes
    for n in range(len(hashes)):
        entry = DIRECTORY + OFFSET_BYTES * int(np.int64(hashes[n] >> np.uint32(low_bits)))
        if not _is_verified(segment, entry, 2 * OFFSET_BYTES, block):
            return False
        start = get(segment.content, entry, OFFSET_BYTES)
        size = get(segment.content, entry + OFFSET_BYTES, OFFSET_BYTES) - start
        if size < 0 or start + size > segment.postings:  # changed since it was verified
            return False
        bucket, low = segment.postings_start + start * entry_bytes, int(np.int64(hashes[n])) & (1 << low_bits) - 1
        if size * coding.low_bytes <= BLOCK:
            if not _is_verified(segment, bucket, size * coding.low_bytes, block):
                return False
            first = _first_at_least(segment, bucket, size, low)
            last = first
            while last < size and get(segment.content, bucket + last * coding.low_bytes, coding.low_bytes) == low:
                last += 1
        else:
            first = _first_in_blocks(segment, bucket, size, low, block)
            last = _first_in_blocks(segment, bucket, size, low + 1, block)
            if first < 0 or last < 0:
                return False
        places[n] = bucket + size * coding.low_bytes + first * coding.number_bytes
        counts[n] = last - first
    return True


@compiled
def read_numbers(segment: MappedSegment, places: Counts, counts: Counts, numbers: Numbers) -> bool:
    """Write the `counts` numbers that begin at each place to `numbers`, one after the other.  False if damaged."""
    size, block, at = segment.coding.number_bytes, np.empty(BLOCK, np.uint8), 0
    for n in range(len(places)):
        if counts[n] and not _is_verified(segment, int(np.int64(places[n])), int(np.int64(counts[n])) * size, block):
            return False
        for place in range(int(np.int64(places[n])), int(np.int64(places[n] + counts[n] * size)), size):
            numbers[at] = segment.coding.first + get(segment.content, place, size)
            at += 1
    return True


@compiled
def _first_at_least(segment: MappedSegment, bucket: int, size: int, low: int) -> int:
    """How many postings of a verified bucket have low bits less than `low`."""
    width, start, stop = segment.coding.low_bytes, 0, size
    while start < stop:
        middle = (start + stop) // 2
        if get(segment.content, bucket + middle * width, width) < low:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _first_in_blocks(segment: MappedSegment, bucket: int, size: int, low: int, block: Bytes) -> int:
    """The same for a bucket larger than a block, of which only the blocks looked at are verified; -1 if damaged."""
    width, start, stop = segment.coding.low_bytes, 0, size
    while start < stop:
        middle = (start + stop) // 2
        place = bucket + middle * width
        if not _is_verified(segment, place, width, block):
            return -1
        if get(segment.content, place, width) < low:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _is_verified(segment: MappedSegment, start: int, size: int, block: Bytes) -> bool:
    """Whether the blocks of some bytes are what was written; those not read before are verified now."""
    for n in range(start // BLOCK - 1, (start + size - 1) // BLOCK):
        if not segment.verified[n]:
            if _pread(segment.descriptor, block.ctypes, BLOCK, (n + 1) * BLOCK) != BLOCK:
                return False
            if checksum(block) != segment.checksums[n]:
                return False
            segment.verified[n] = True
    return True
