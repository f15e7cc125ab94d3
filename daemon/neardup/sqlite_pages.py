"""Computes how many bytes of an SQLite file a record takes (sqlite.org/fileformat2.html).

A record is a header with the types of the columns, followed by their values.  A cell in a leaf of a table holds the
record's length, the row id and the record; two bytes of the page point to it.
"""

PAGE = 4096
LEAF_HEADER, POINTER = 8, 2
INTERIOR = 1.005  # factor for the interior pages above the leaves


def bytes_in_leaves(cell: float) -> float:
    """The bytes of leaf pages that a cell of this size takes; on average half a cell of each page stays free."""
    size = cell + POINTER
    return INTERIOR * size * PAGE / (PAGE - LEAF_HEADER - size / 2)


def integer_bytes(value: int) -> int:
    """The bytes of an integer in a record."""
    return next(size for size in (1, 2, 3, 4, 6, 8) if value < 1 << (8 * size - 1))


def varint_bytes(value: float) -> int:
    """The bytes of a length below 2 ** 21 in a cell."""
    return 1 if value < 128 else 2 if value < 16384 else 3
