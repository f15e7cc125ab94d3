"""Writes a segment from its postings in ascending order, a range of prefixes at a time."""

import os
import stat
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import xxhash

from neardup.core.native.segments import Bytes, Checksums, Coding
from neardup.durability import sync_folder
from neardup.index.passages.layout import (
    BLOCK,
    DIRECTORY_START,
    OFFSET,
    Header,
    block_checksums,
    header_block,
    whole_blocks,
)
from neardup.index.passages.postings import PREFIX_BITS, Keys, encode, numbers_of

READ_AND_WRITE = 0o660  # what the mode of a segment has of its folder's
PARTIAL = ".partial"  # of the name of a segment while it is written


class SegmentWriter:
    """A segment being written, as a context manager.

    The file appears under its name when `finish` returns, complete and synced to disk with its folder; until then it
    has the suffix PARTIAL.  `header` has the coding, the range of numbers and the most postings that may be appended.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self._path, self._partial, self._header = path, path.with_name(path.name + PARTIAL), header
        self._coding = Coding(header.bucket_bits, header.low_bytes, header.number_bytes, header.first)
        self._held = np.zeros(header.last - header.first + 1, np.bool_)
        self._postings = 0

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(self._descriptor, stat.S_IMODE(self._partial.parent.stat().st_mode) & READ_AND_WRITE)
        self._directory = _Part(self._descriptor, DIRECTORY_START)
        self._content = _Part(self._descriptor, self._header.postings_start)
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        os.close(self._descriptor)

    def append(self, prefixes: range, keys: Keys) -> None:
        """Add all the postings of a range of prefixes, as sorted keys.  Every prefix is added once, in order."""
        shift = self._header.bucket_bits - PREFIX_BITS
        offsets, content = encode(keys, self._coding, range(prefixes.start << shift, prefixes.stop << shift))
        self._directory.append((offsets + np.uint32(self._postings)).astype(OFFSET).view(np.uint8))
        self._content.append(content)
        self._held[numbers_of(keys) - np.uint32(self._header.first)] = True
        self._postings += len(keys)

    def finish(self) -> None:
        """Write what remains, sync the file, and give it its name."""
        self._directory.append(np.array([self._postings], OFFSET).view(np.uint8))
        checksums = np.concatenate([self._directory.finish(), self._content.finish()]).astype("<u8").view(np.uint8)
        trailer = _filled(checksums)
        header = replace(
            self._header,
            postings=self._postings,
            stories=int(np.count_nonzero(self._held)),
            checksums=xxhash.xxh64_intdigest(trailer.data),
        )
        _write(self._descriptor, trailer, header.checksums_start)
        _write(self._descriptor, np.frombuffer(header_block(header), np.uint8), 0)
        os.fsync(self._descriptor)
        self._partial.replace(self._path)
        sync_folder(self._path.parent)


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
        self._write(_filled(self._rest))
        return np.concatenate(self._checksums)

    def _write(self, blocks: Bytes) -> None:
        self._checksums.append(block_checksums(blocks))
        _write(self._descriptor, blocks, self._at)
        self._at += len(blocks)


def _filled(content: Bytes) -> Bytes:
    return np.concatenate([content, np.zeros(whole_blocks(len(content)) - len(content), np.uint8)])


def _write(descriptor: int, content: Bytes, at: int) -> None:
    view = content.data
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written
