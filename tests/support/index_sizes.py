"""The bytes of real indexes of synthetic stories: in Redis grown in batches, in SQLite built at once.

The sizes of buckets are as skewed as those of prose.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import numpy as np
import redis
from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.languages import LANGUAGES
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.layouts import INTSET_ENTRIES
from neardup.index.sqlite import SqliteIndex
from neardup.records import BandedFingerprint, Change, Language

from tests.support import synthetic
from tests.support.languages import CODES, NAMES, NUMBER_OF
from tests.support.servers import redis_server
from tests.support.synthetic import FIRST_LISTED_ID, ID_STEP


async def pages_of(sizes: Mapping[Language, int]) -> AsyncIterator[FingerprintArrays]:
    """Pages of `sizes[language]` stories of each language, numbered from 1."""
    number = 1
    for language, count in sizes.items():
        for part in synthetic.draw_chunks(np.random.default_rng(1), synthetic.prose(language), count):
            numbers = np.arange(number, number := number + len(part))
            yield FingerprintArrays(
                numbers.astype(np.uint32),
                FIRST_LISTED_ID + ID_STEP * numbers,
                np.full(len(part), NUMBER_OF[language], np.uint8),
                np.ascontiguousarray(part.simhashes).view(np.uint64),
                part.signatures,
                np.ones(len(part), np.bool_),
                NAMES,
            )


BATCH = 256


async def redis_bytes(layout: Layout, sizes: dict[Language, int], folder: Path) -> int:
    """The bytes that an index in a layout adds to a server's memory, once these stories were inserted in batches."""
    with (
        redis_server(folder, "--set-max-intset-entries", str(INTSET_ENTRIES)) as url,
        redis.Redis.from_url(url) as client,
    ):
        index = await open_redis(url, Detection().bandings(LANGUAGES), CODES, layout)
        before = int(client.info("memory")["used_memory"])
        await index.clear("ledger", "version", sizes)
        async for page in pages_of(sizes):
            for start in range(0, len(page), BATCH):
                changes = [
                    Change(
                        number,
                        int(page.ids[n]),
                        None,
                        BandedFingerprint(
                            LANGUAGES[page.languages[n]], page.simhashes[n].tobytes(), page.signatures[n].tobytes()
                        ),
                        number,
                    )
                    for n in range(start, min(start + BATCH, len(page)))
                    for number in [int(page.numbers[n])]
                ]
                await index.apply(changes, changes[-1].seq)
        await index.close()
        return int(client.info("memory")["used_memory"]) - before


async def sqlite_bytes(sizes: dict[Language, int], folder: Path) -> int:
    """The bytes of the file of an index that is built from these stories."""
    path = folder / "index.db"
    index = SqliteIndex(path, Detection().bandings(LANGUAGES))
    await index.clear("ledger", "version", sizes)
    async for _ in index.build(pages_of(sizes), folder):
        pass
    await index.close()
    return path.stat().st_size
