"""Which keys in a Redis are the index's, of either layout, and how they are dropped."""

import re
from collections import defaultdict
from typing import Any

from daemon.records import ISO_CODES, Language

SCAN_COUNT = 5000
LANGUAGE = rf"\{{?({'|'.join([*Language, *ISO_CODES])})\}}?"
OURS = re.compile(
    rf"(?:sketch:)?{LANGUAGE}:n?\d+:[0-9A-F]{{4}}"
    rf"|(?:simhashes|neardup:applied|neardup:filled|neardup:stories):{LANGUAGE}".encode()
)


async def drop_all_of_languages(client: Any) -> None:
    """Drop whatever has a language in its key; keys that are not ours stay."""
    doomed: dict[bytes, list[bytes]] = defaultdict(list)
    async for key in client.scan_iter(match="*:*", count=SCAN_COUNT):
        if ours := OURS.fullmatch(key):
            keys = doomed[ours[1] or ours[2]]  # those of a language share a slot
            keys.append(key)
            if len(keys) == SCAN_COUNT:
                await client.unlink(*keys)
                keys.clear()
    for keys in filter(None, doomed.values()):
        await client.unlink(*keys)
