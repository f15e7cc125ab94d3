"""The layout of a segment: an immutable file of sorted postings.

A *posting* is a passage hash and the number of a story that has it.  A *bucket* is the postings whose hashes have the
same top `bucket_bits` bits.  The file has these parts, each filled up with zeros to a multiple of BLOCK bytes:

    header      one block: its length in 4 bytes, the Header as JSON, zeros, the XXH64 of what precedes in 8 bytes
    directory   for each bucket, how many postings precede it, and at last the number of postings: uint32
    postings    for each bucket: the low bits of the hash of each posting, then the number of each less `first`
    checksums   the XXH64 of each block of directory and postings: uint64

Integers are little-endian.  Low bits take 1 byte if `bucket_bits` is 24, else 2, and numbers as many as they need, so
16 million stories take 4 bytes a posting.  A bucket has about 60 postings, so a lookup reads one entry of the
directory and one block of postings.
"""

import json
import re
from dataclasses import asdict, dataclass

import numpy as np
import xxhash

from neardup.core.native import in_c
from neardup.core.native import segments as native
from neardup.core.native.segments import Bytes, Checksums
from neardup.errors import Fatal

FORMAT = 1
BLOCK = native.BLOCK  # bytes; what a disk reads at least
HASH_BITS = 32
MIN_BUCKET_BITS, MAX_TWO_BYTE_BITS, ONE_BYTE_BITS = 16, 20, 24
POSTINGS_A_BUCKET_BITS = 6
DIRECTORY_START = BLOCK
OFFSET = np.dtype("<u4")  # of a posting, in the directory
LENGTH_BYTES, CHECKSUM_BYTES = 4, 8
SUFFIX = ".passages"
NAME = re.compile(r"(\d{8})-(\d{10})-(\d{10})\.passages")


class HeaderDamaged(Exception):
    """The header is not what was written."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment says of itself.  It holds the stories `first` to `last`; `stories` counts those with postings.

    `made_at` is the ledger's last change when the segment was made: it lacks what had been removed by then.
    """

    ledger: str
    algorithm: str
    made_at: int
    first: int
    last: int
    stories: int
    postings: int
    bucket_bits: int
    number_bytes: int
    checksums: int  # the XXH64 of that part
    format: int = FORMAT

    @property
    def low_bytes(self) -> int:
        return 1 if self.bucket_bits == ONE_BYTE_BITS else 2

    @property
    def postings_start(self) -> int:
        return DIRECTORY_START + whole_blocks(((1 << self.bucket_bits) + 1) * OFFSET.itemsize)

    @property
    def checksums_start(self) -> int:
        return self.postings_start + whole_blocks(self.postings * (self.low_bytes + self.number_bytes))

    @property
    def file_bytes(self) -> int:
        return self.checksums_start + whole_blocks((self.checksums_start // BLOCK - 1) * CHECKSUM_BYTES)


def whole_blocks(size: int) -> int:
    """The least multiple of BLOCK that is not less than `size`."""
    return -(-size // BLOCK) * BLOCK


def bucket_bits(postings: int) -> int:
    """The bucket bits of a segment with so many postings.

    From 2^26 postings on, the directory for one-byte low bits takes no more than those bits save.
    """
    if postings >= 1 << MAX_TWO_BYTE_BITS + POSTINGS_A_BUCKET_BITS:
        return ONE_BYTE_BITS
    return min(max(postings.bit_length() - POSTINGS_A_BUCKET_BITS, MIN_BUCKET_BITS), MAX_TWO_BYTE_BITS)


def number_bytes(span: int) -> int:
    """The bytes of a number less `first` in a segment of `span` numbers, at least 1."""
    return max(1, ((span - 1).bit_length() + 7) // 8)


def segment_bytes(postings: int, span: int) -> int:
    """The size of a segment with so many postings of `span` numbers, in bytes."""
    return Header("", "", 0, 1, span, 0, postings, bucket_bits(postings), number_bytes(span), 0).file_bytes


def header_block(header: Header) -> bytes:
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
        raise Fatal(f"the passage index has format {fields['format']}; this neardup reads format {FORMAT}")
    return Header(**fields)


@in_c(native.block_checksums)
def block_checksums(blocks: Bytes) -> Checksums:
    """Bytes (n * BLOCK,) -> the XXH64 (https://xxhash.com, seed 0) of each block: (n,)."""
    return np.array([xxhash.xxh64_intdigest(block.data) for block in blocks.reshape(-1, BLOCK)], np.uint64)


def file_name(generation: int, first: int, last: int) -> str:
    """The name of a segment; of two that hold the same stories, the one of the higher generation replaces the other."""
    return f"{generation:08}-{first:010}-{last:010}{SUFFIX}"
