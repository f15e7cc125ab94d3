"""The bytes of SQLite files: of the ledger, story by story, and of the embedded index, bucket by bucket.

A record is a header of the columns' types and their values; a cell in a table's leaf has its length, its row
id and the record, and is pointed to by two bytes of its page (sqlite.org/fileformat2.html).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import SHARED_BLOCKS, Banding
from neardup.core.fingerprint.minhash import ROWS
from neardup.index.packed_buckets import NUMBER_BYTES
from neardup.insights.plan.spread import Spread, even_spread, signature_spread

Sizes = npt.NDArray[np.int64]

PAGE = 4096
LEAF_HEADER, POINTER = 8, 2
MOST_LOCAL, LEAST_LOCAL = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
OVERFLOW_LINK = 4
INTERIOR = 1.005  # the pages above the leaves
HASH_BYTES, TIME_BYTES, NUMBER_VALUE_BYTES = 16, 6, 4
COLUMNS = 13
SMALL = 4096  # rows that a ledger's other tables take, in bytes
TABLES = 20


@dataclass(frozen=True, slots=True)
class StoryRow:
    """What a ledger holds of a story besides its hashes, on average; those that are not there have 0 bytes."""

    highest_id: int = 9_999_999_999_999_999
    title: float = 48.0
    path: float = 0.0
    author_id: float = 8.0
    etag: float = 16.0
    dates: float = 2.0


def integer_bytes(value: int) -> int:
    """Of an integer in a record."""
    return next(size for size in (1, 2, 3, 4, 6, 8) if value < 1 << (8 * size - 1))


def ledger_bytes(stories: float, signed: float, row: StoryRow) -> float:
    """Stories and the index of their ids, listed in the order of these; of them `signed` have a signature."""
    values = (
        integer_bytes(row.highest_id)
        + 1  # language
        + 2 * HASH_BYTES
        + ROWS * signed
        + TIME_BYTES * row.dates
        + row.etag
        + 2 * 2  # words and shingles
        + row.author_id
        + row.path
        + row.title
    )
    header = 1 + COLUMNS + 1 * signed + (row.title > 57) + (row.path > 57)
    record = header + values
    cell = _varint(record) + 4 + record
    entry = _varint(0) + 3 + integer_bytes(row.highest_id) + NUMBER_VALUE_BYTES
    return stories * (_in_leaves(cell) + _in_leaves(entry)) + TABLES * SMALL


def index_bytes(stories: float, signed: float, skew: float, banding: Banding, bits: int) -> dict[str, float]:
    """The buckets of a language by tier, rebuilt in order; those that grew in place take up to a third more."""
    blocks = even_spread(banding.hamming + SHARED_BLOCKS, bits)
    sketched = signature_spread(skew, banding.bands, bits)
    return {"near": _buckets(blocks, stories), "similar": _buckets(sketched, stories * signed)}


def _buckets(spread: Spread, stories: float) -> float:
    cells, filled = spread.expected(stories, _local), spread.filled(stories)
    overflow = spread.expected(stories, _overflow)
    return filled * _in_leaves(cells / filled) + overflow if filled else 0.0


def _local(members: Sizes) -> Sizes:
    """What of a bucket's row stands in a leaf of the table."""
    payload = NUMBER_BYTES * members + 4
    rest = LEAST_LOCAL + (payload - LEAST_LOCAL) % (PAGE - OVERFLOW_LINK)
    local = np.where(rest <= MOST_LOCAL, rest, LEAST_LOCAL)
    return np.where(members > 0, np.where(payload <= MOST_LOCAL, payload, local + OVERFLOW_LINK) + 5, 0)


def _overflow(members: Sizes) -> Sizes:
    """And what in pages of its own."""
    payload = NUMBER_BYTES * members + 4
    beyond = np.where(payload > MOST_LOCAL, payload - LEAST_LOCAL, 0)
    return -(-beyond // (PAGE - OVERFLOW_LINK)) * PAGE


def _varint(value: float) -> int:
    return 1 if value < 128 else 2 if value < 16384 else 3


def _in_leaves(cell: float) -> float:
    """The share of a page that a cell takes: the last one that a page has room for leaves half a cell free."""
    size = cell + POINTER
    return INTERIOR * size * PAGE / (PAGE - LEAF_HEADER - size / 2)
