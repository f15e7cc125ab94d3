"""An open segment: its parts are verified before they are used, by checksum."""

import os
import weakref
from functools import cached_property
from pathlib import Path

import numpy as np

from neardup.errors import PassagesDamaged
from neardup.index.passages.checksums import BLOCK, Bytes, Checksums, block_checksums, checksum
from neardup.index.passages.layout import (
    DIRECTORY_START,
    OFFSET,
    HeaderDamaged,
    read_header,
)
from neardup.index.passages.postings import PREFIX_BITS, PREFIXES, Coding, Keys, Offsets, decode
from neardup.index.passages.segment_lookup import SegmentBlocks

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
        if int(checksum(content)) != self.header.checksums:
            raise self.damaged()
        return content.view("<u8")[: start // BLOCK - 1]

    @cached_property
    def blocks(self) -> SegmentBlocks:
        """The segment as a lookup reads it.  Raises PassagesDamaged if the checksums are damaged."""
        return SegmentBlocks(
            self._descriptor,
            self._coding,
            self.header.postings,
            self.header.postings_start,
            self._checksums,
            np.zeros(len(self._checksums), np.bool_),
        )

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
        size = self._coding.low_bytes + self._coding.number_bytes
        content = self._verified(
            self.header.postings_start + int(offsets[0]) * size, (int(offsets[-1]) - int(offsets[0])) * size
        )
        return decode(content, self._coding, prefixes.start << shift, offsets)

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
