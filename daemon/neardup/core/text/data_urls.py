"""The documents that stand in `data:` addresses (RFC 2397)."""

import base64
import binascii
import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

DATA = re.compile(r"\s*data:([^,;]*)((?:;[^,;]*)*),(.*)", re.IGNORECASE | re.DOTALL)
LONGEST = 4_000_000  # characters; the pipeline reads no larger page


class DataURL(NamedTuple):
    """The media type of a `data:` address, in lower case, and its document as text."""

    kind: str
    text: str


def data_url(address: str | None) -> DataURL | None:
    """A `data:` address -> its document, of which broken bytes are replaced; None for other addresses."""
    match = DATA.match(address) if address and len(address) <= LONGEST else None
    if match is None:
        return None
    body = unquote_to_bytes(match[3])
    if match[2].lower().rstrip().endswith(";base64"):
        try:
            body = base64.b64decode(body + b"=" * (-len(body) % 4))
        except binascii.Error:
            return None
    return DataURL(match[1].strip().lower() or "text/plain", body.decode("utf-8", "replace"))
