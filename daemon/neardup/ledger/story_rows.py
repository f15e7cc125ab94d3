"""The rows of `stories`: how their long columns are stored.

Most of a ledger consists of these rows.  So the digits of a hash are stored as bytes, and the digits of an id as an
integer.  Unpacking returns exactly the original text; a text for which it would not is stored as it is.
"""

import re

MAX_INTEGER = 2**63 - 1
MD5 = re.compile(r'"[0-9a-f]{32}"')
INTEGER = re.compile(r"0|[1-9][0-9]{0,18}")


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
