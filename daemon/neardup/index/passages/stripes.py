"""Reads several sources in the order of their hashes, a stripe of prefixes at a time, in bounded memory."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from neardup.index.passages.postings import PREFIXES, Keys, Offsets, merged

STRIPE_POSTINGS = 1 << 22  # 32 MiB of keys; more only if one prefix has more


class Source(Protocol):
    """A segment, or a run of the tail."""

    @property
    def postings(self) -> int: ...

    def prefix_offsets(self) -> Offsets: ...

    def keys_of_prefixes(self, prefixes: range) -> Keys: ...


def stripes(sources: Sequence[Source]) -> Iterator[tuple[range, Keys]]:
    """All the prefixes in order, as ranges with their sorted keys of all sources."""
    preceding = sum(
        (source.prefix_offsets().astype(np.uint64) for source in sources), np.zeros(PREFIXES + 1, np.uint64)
    )
    start = 0
    while start < PREFIXES:
        limit = preceding[start] + np.uint64(STRIPE_POSTINGS)
        stop = max(int(np.searchsorted(preceding, limit, side="right")) - 1, start + 1)
        prefixes = range(start, stop)
        yield prefixes, merged([source.keys_of_prefixes(prefixes) for source in sources])
        start = stop
