"""Which keys in a Redis are the index's, of either layout: how they are made, and how they are dropped."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neardup.core.candidates.banding import BAND_BITS
from neardup.index.packed_buckets import Buckets

SCAN_COUNT = 5000
DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
SHIFTS = np.arange(BAND_BITS - 4, -1, -4)  # of a value's digits


class PackedKeys:
    """The keys of a language's packed buckets: what those of each column begin with, and a value of four digits."""

    def __init__(self, columns: Sequence[bytes]) -> None:
        self._lengths = np.array([len(column) for column in columns])
        width = int(self._lengths.max()) + len(SHIFTS)
        self._heads = np.array([list(column.ljust(width, b"\0")) for column in columns], np.uint8)

    def of(self, buckets: Buckets) -> list[bytes]:
        """The keys of buckets; all at once, since one by one they took a quarter of an insert."""
        columns, values = buckets >> BAND_BITS, buckets & (1 << BAND_BITS) - 1
        keys = self._heads[columns]
        places = self._lengths[columns, None] + np.arange(len(SHIFTS))
        keys[np.arange(len(keys))[:, None], places] = DIGITS[values[:, None] >> SHIFTS & 15]
        made: list[bytes] = keys.view(f"S{keys.shape[1]}").ravel().tolist()  # without the zeros at their ends
        return made


def our_keys(languages: Iterable[str]) -> re.Pattern[bytes]:
    """What the keys match that have one of these names or codes of languages in them."""
    language = rf"\{{?({'|'.join(map(re.escape, languages))})\}}?"
    return re.compile(
        rf"(?:sketch:)?{language}:n?\d+:[0-9A-F]{{4}}"
        rf"|(?:simhashes|neardup:applied|neardup:filled|neardup:stories):{language}".encode()
    )


async def drop_all_of_languages(client: Any, ours: re.Pattern[bytes]) -> None:
    """Drop whatever has a language in its key (`our_keys`); other keys stay."""
    doomed: dict[bytes, list[bytes]] = defaultdict(list)
    async for key in client.scan_iter(match="*:*", count=SCAN_COUNT):
        if found := ours.fullmatch(key):
            keys = doomed[found[1] or found[2]]  # those of a language share a slot
            keys.append(key)
            if len(keys) == SCAN_COUNT:
                await client.unlink(*keys)
                keys.clear()
    for keys in filter(None, doomed.values()):
        await client.unlink(*keys)
