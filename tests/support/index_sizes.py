"""The bytes of real indexes of synthetic stories: in Redis grown in batches, in SQLite built at once."""

from pathlib import Path

import redis
from neardup.config import Detection
from neardup.core.languages import LANGUAGES
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.documented import INTSET_ENTRIES
from neardup.index.sqlite import SqliteIndex
from neardup.records import BandedFingerprint, Change, Language

from tests.support.languages import CODES
from tests.support.servers import redis_server
from tests.support.synthetic_pages import pages_of

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
