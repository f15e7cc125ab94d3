"""Binds segments.c: lookups in segments and in memory, and how postings become bytes and bytes postings."""

import ctypes
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.native import BOOL, DAMAGED, INT64, UINT8, UINT32, UINT64, address, bind, check_code, list_fields

BLOCK = 4096  # bytes; ND_SEGMENT_BLOCK of neardup.h
ENTRY_BITS = 32  # of a table of heads

Bytes = npt.NDArray[np.uint8]
Checksums = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.uint32]
PassageHashes = npt.NDArray[np.uint32]
Integer = TypeVar("Integer", int, Counts)


class Coding(NamedTuple):
    """How a segment writes its postings (see neardup.index.passages.segment)."""

    bucket_bits: int
    head_bits: int
    number_bits: int
    first: int

    @property
    def low_bits(self) -> int:
        """The bits of a hash that are neither its bucket's nor its head."""
        return 32 - self.bucket_bits - self.head_bits

    @property
    def heads(self) -> int:
        """How many heads a bucket may have."""
        return 1 << self.head_bits

    @property
    def table_bits(self) -> int:
        """The bits of a table of heads, which a bucket has room for that has as many postings."""
        return ENTRY_BITS * self.heads

    def place(self, bucket: Integer, preceding: Integer) -> Integer:
        """The byte, of those of all postings, where a bucket begins that so many postings precede."""
        return (preceding * (1 + self.low_bits + self.number_bits) + bucket * (self.heads + 7)) // 8

    def size(self, buckets: range, preceding: int, postings: int) -> int:
        """The bytes of some buckets that have so many postings, and that so many precede."""
        return self.place(buckets.stop, preceding + postings) - self.place(buckets.start, preceding)


class SegmentBlocks(NamedTuple):
    """A segment's file, to be read by blocks.

    `checksums` (blocks,) are those of the blocks after the header.  `verified` (blocks,) says which of them were what
    was written when they were read first; lookups set it.
    """

    descriptor: int
    coding: Coding
    postings: int
    postings_start: int
    checksums: Checksums
    verified: npt.NDArray[np.bool_]


class _Coding(ctypes.Structure):
    _fields_ = [
        ("bucket_bits", ctypes.c_int32),
        ("head_bits", ctypes.c_int32),
        ("number_bits", ctypes.c_int32),
        ("first", ctypes.c_uint32),
    ]


class _Segment(ctypes.Structure):
    _fields_ = [
        ("coding", _Coding),
        ("descriptor", ctypes.c_int32),
        *list_fields("postings postings_start blocks *checksums *verified", ctypes.c_uint64),
    ]


_size, _coding, _segment = ctypes.c_int64, ctypes.POINTER(_Coding), ctypes.POINTER(_Segment)
_block_checksums = bind("nd_block_checksums", UINT8, _size, UINT64)
_encode = bind("nd_encode_postings", _coding, UINT64, _size, _size, _size, _size, UINT32, UINT8, _size)
_decode = bind("nd_decode_postings", _coding, UINT8, _size, _size, UINT32, _size, UINT64, _size)
_find = bind("nd_find_postings", _segment, UINT32, _size, INT64, INT64)
_read_numbers = bind("nd_read_numbers", _segment, INT64, INT64, _size, UINT32, _size)
_find_keys = bind("nd_find_keys", UINT64, _size, UINT32, _size, INT64, INT64)
_put_in_filter = bind("nd_put_in_filter", UINT8, _size, UINT32, _size)
_may_hold = bind("nd_filter_may_hold", UINT8, _size, UINT32, _size, BOOL)


def block_checksums(blocks: Bytes) -> Checksums:
    """See neardup.index.passages.segment.block_checksums."""
    checksums = np.empty(len(blocks) // BLOCK, np.uint64)
    check_code(_block_checksums(blocks, len(blocks), checksums))
    return checksums


def encode(keys: Keys, coding: Coding, buckets: range, preceding: int) -> tuple[Offsets, Bytes]:
    """See neardup.index.passages.postings.encode."""
    offsets = np.empty(len(buckets), np.uint32)
    content = np.empty(coding.size(buckets, preceding, len(keys)), np.uint8)
    places = buckets.start, len(buckets), preceding
    check_code(_encode(_Coding(*coding), keys, len(keys), *places, offsets, content, len(content)))
    return offsets, content


def decode(content: Bytes, coding: Coding, first_bucket: int, offsets: Offsets) -> Keys:
    """See neardup.index.passages.postings.decode."""
    most = 8 * len(content)  # each has a bit at least, whatever the offsets say
    keys = np.empty(min(max(int(offsets[-1]) - int(offsets[0]), 0), most), np.uint64)
    buckets = first_bucket, offsets, len(offsets) - 1
    check_code(_decode(_Coding(*coding), content, len(content), *buckets, keys, len(keys)))
    return keys


def find(segment: SegmentBlocks, hashes: PassageHashes) -> tuple[Counts, Counts] | None:
    """See neardup.index.passages.segment.find."""
    places, counts = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    code = _find(_describe_segment(segment), hashes, len(hashes), places, counts)
    if code == DAMAGED:
        return None
    check_code(code)
    return places, counts


def read_numbers(segment: SegmentBlocks, places: Counts, counts: Counts) -> Numbers | None:
    """See neardup.index.passages.segment.read_numbers."""
    numbers = np.empty(counts.sum(), np.uint32)
    code = _read_numbers(_describe_segment(segment), places, counts, len(places), numbers, len(numbers))
    if code == DAMAGED:
        return None
    check_code(code)
    return numbers


def find_keys(keys: Keys, hashes: PassageHashes) -> tuple[Counts, Counts]:
    """See neardup.index.passages.postings.find_keys."""
    places, counts = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
    check_code(_find_keys(keys, len(keys), hashes, len(hashes), places, counts))
    return places, counts


def put_in_filter(hashes: PassageHashes, filter_: Bytes) -> None:
    """See neardup.index.passages.postings.put_in_filter."""
    check_code(_put_in_filter(filter_, len(filter_), hashes, len(hashes)))


def may_hold(filter_: Bytes, hashes: PassageHashes) -> npt.NDArray[np.bool_]:
    """See neardup.index.passages.postings.may_hold."""
    held = np.empty(len(hashes), np.bool_)
    check_code(_may_hold(filter_, len(filter_), hashes, len(hashes), held))
    return held


def _describe_segment(segment: SegmentBlocks) -> _Segment:
    return _Segment(
        _Coding(*segment.coding),
        segment.descriptor,
        segment.postings,
        segment.postings_start,
        len(segment.checksums),
        address(segment.checksums, np.uint64),
        address(segment.verified, np.bool_),
    )
