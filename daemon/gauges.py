"""The gauges that are read off the ledger and the index."""

import asyncio
from contextlib import suppress

from daemon.app import App
from daemon.errors import NeardupError
from daemon.ledger import candidates, changes, runs
from daemon.metrics import CANDIDATES_PENDING, DEAD_LETTERS, INDEX_LAG, INDEX_STORIES, LARGEST_BUCKET, LAST_SUCCESS

# A bucket is met as often as it is full: one that holds a share p of the stories is missed by n of
# them with probability (1 - p)^n.
SAMPLE = 500
EVERY_SECONDS = 60.0


async def refresh_gauges(app: App) -> None:
    """Set them.  Raises Transient where the index does not answer."""
    for language, n in (await app.index.sizes()).items():
        INDEX_STORIES.labels(language).set(n)
    for name, n in (await _largest_buckets(app)).items():
        LARGEST_BUCKET.labels(name).set(n)
    applied = (await app.index.mark()).applied or 0
    INDEX_LAG.set(await app.ledger.do(changes.last_seq) - applied)
    CANDIDATES_PENDING.set(await app.ledger.do(candidates.pending_count))
    letters = await app.ledger.do(runs.dead_letters)
    DEAD_LETTERS.clear()
    for reason, n in letters.items():
        DEAD_LETTERS.labels(reason).set(n)
    for command, at in (await app.ledger.do(runs.last_success)).items():
        LAST_SUCCESS.labels(command).set(at / 1000)


async def keep_gauges(app: App, ended: asyncio.Event) -> None:
    """Set them now and then, until `ended` is set."""
    while not ended.is_set():
        with suppress(NeardupError):
            await refresh_gauges(app)
        with suppress(TimeoutError):
            async with asyncio.timeout(EVERY_SECONDS):
                await ended.wait()


async def _largest_buckets(app: App) -> dict[str, int]:
    """Language -> members of the fullest bucket that the stories that changed last fall into."""
    largest: dict[str, int] = {}
    for name, n in (await app.index.bucket_sizes(await app.ledger.do(changes.recent, SAMPLE))).items():
        language = name.removeprefix("sketch:").partition(":")[0]
        largest[language] = max(n, largest.get(language, 0))
    return largest
