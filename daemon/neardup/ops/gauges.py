"""The gauges that are read off the ledger and the index."""

import asyncio
import shutil
import sqlite3
from contextlib import suppress

from neardup.app import App
from neardup.errors import NeardupError
from neardup.ledger import active_verdicts, candidates, changes, runs, verdicts
from neardup.records import Verdict
from neardup.telemetry.metrics import (
    CANDIDATES_PENDING,
    DEAD_LETTERS,
    DISK_FREE,
    DISK_SIZE,
    IN_CONTEXT,
    INDEX_LAG,
    INDEX_STORIES,
    KEPT_PAIRS,
    LARGEST_BUCKET,
    LAST_SUCCESS,
    PRECISION,
    VERDICTS,
)

# A bucket is met as often as it is full: one that holds a share p of the stories is missed by n of
# them with probability (1 - p)^n.
SAMPLE = 500
EVERY_SECONDS = 60.0


async def refresh_gauges(app: App) -> None:
    """Set them.  Raises Transient where the index does not answer."""
    disk = shutil.disk_usage(app.config.ledger.path.parent)
    DISK_FREE.set(disk.free)
    DISK_SIZE.set(disk.total)
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
    await app.ledger.do(_tell_of_verdicts)
    for command, at in (await app.ledger.do(runs.last_success)).items():
        LAST_SUCCESS.labels(command).set(at / 1000)


def _tell_of_verdicts(db: sqlite3.Connection) -> None:
    for gauge in (VERDICTS, PRECISION, KEPT_PAIRS, IN_CONTEXT):
        gauge.clear()  # an undone verdict may have been the last of its kind
    for row in verdicts.precision(db):
        PRECISION.labels(row["language"], row["kind"]).set(1 - row["not_similar"] / row["judged"])
        for verdict in Verdict:
            VERDICTS.labels(row["language"], row["kind"], verdict).set(row[verdict])
    for labels, n in active_verdicts.suppressed_counts(db).items():
        KEPT_PAIRS.labels(*labels).set(n)
    for labels, n in active_verdicts.context_counts(db).items():
        IN_CONTEXT.labels(*labels).set(n)


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
