"""The rows of `stories`: how their long columns are stored, and how many bytes they take.

Most of a ledger consists of these rows.  So the digits of a hash are stored as bytes, and the digits of an id as an
integer.  Unpacking returns exactly the original text; a text for which it would not is stored as it is.
"""

import re
from dataclasses import dataclass

from neardup.core.fingerprint.minhash import ROWS
from neardup.sqlite import bytes_in_leaves, integer_bytes, varint_bytes

MAX_INTEGER = 2**63 - 1
MD5 = re.compile(r'"[0-9a-f]{32}"')
INTEGER = re.compile(r"0|[1-9][0-9]{0,18}")
HASH_BYTES, TIME_BYTES, NUMBER_BYTES = 16, 6, 4
COLUMNS = 16
LONGEST_SHORT_TEXT = 57  # longer texts have a type of two bytes
SMALL_TABLE = 4096  # bytes
TABLES = 46  # and indexes, that stay small


def pack_etag(etag: str | None) -> bytes | str | None:
    """Pack the ETag of an object that was uploaded in one part, which is a quoted MD5, into 16 bytes."""
    return bytes.fromhex(etag[1:-1]) if etag is not None and MD5.fullmatch(etag) else etag


def unpack_etag(packed: bytes | str | None) -> str | None:
    """The inverse of `pack_etag`."""
    return f'"{packed.hex()}"' if isinstance(packed, bytes) else packed


def pack_id(digits: str | None) -> int | str | None:
    """Pack an id that consists of decimal digits into an integer; CAST(... AS TEXT) unpacks it."""
    if digits is None or not INTEGER.fullmatch(digits) or int(digits) > MAX_INTEGER:
        return digits
    return int(digits)


@dataclass(frozen=True, slots=True)
class StoryRow:
    """The average bytes that a ledger holds of a story besides its hashes; 0 for a field that is absent.

    `dates` is the number of dates that the listing has of a story.
    """

    highest_id: int = 9_999_999_999_999_999
    title: float = 48.0
    path: float = 0.0
    author_id: float = 8.0
    etag: float = 16.0
    dates: float = 2.0


def ledger_bytes(stories: float, signed: float, row: StoryRow) -> float:
    """The bytes of the table of stories and of the index of their ids, for stories listed in the order of their ids.

    `signed` is the share of stories that have a signature.
    """
    values = (
        integer_bytes(row.highest_id)
        + 1  # language
        + 2 * HASH_BYTES
        + ROWS * signed
        + TIME_BYTES * (row.dates + 1)  # and when neardup recorded it
        + row.etag
        + 2 * 2  # words and shingles
        + row.author_id
        + row.path
        + row.title
    )
    header = 1 + COLUMNS + 1 * signed + (row.title > LONGEST_SHORT_TEXT) + (row.path > LONGEST_SHORT_TEXT)
    record = header + values
    cell = varint_bytes(record) + 4 + record
    entry = varint_bytes(0) + 3 + integer_bytes(row.highest_id) + NUMBER_BYTES
    return stories * (bytes_in_leaves(cell) + bytes_in_leaves(entry)) + TABLES * SMALL_TABLE
