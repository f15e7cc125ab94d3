"""Columns in few bytes: a hash's digits as its bytes, an id's digits as an integer.

What was packed is given back as it was, to the letter; what would not be is kept as text.
"""

import re

MAX_INTEGER = 2**63 - 1
MD5 = re.compile(r'"[0-9a-f]{32}"')
INTEGER = re.compile(r"0|[1-9][0-9]{0,18}")


def packed_etag(etag: str | None) -> bytes | str | None:
    """The ETag of an object that was uploaded in one part, a quoted MD5, as 16 bytes."""
    return bytes.fromhex(etag[1:-1]) if etag is not None and MD5.fullmatch(etag) else etag


def etag_of(packed: bytes | str | None) -> str | None:
    """What `packed_etag` was given."""
    return f'"{packed.hex()}"' if isinstance(packed, bytes) else packed


def packed_id(digits: str | None) -> int | str | None:
    """An id that is kept as text but is the decimal digits of an integer, as that; CAST(... AS TEXT) unpacks it."""
    if digits is None or not INTEGER.fullmatch(digits) or int(digits) > MAX_INTEGER:
        return digits
    return int(digits)
