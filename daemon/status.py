"""How neardup stands, read off the ledger and the index."""

import sqlite3
from typing import Any

from daemon.app import open_index
from daemon.config import Config
from daemon.errors import NeardupError
from daemon.gauges import SAMPLE, largest_buckets
from daemon.ledger import flags, lock, read, runs, stories
from daemon.review.export import rfc3339

RUNS = 5


async def status(config: Config) -> dict[str, Any]:
    """Everything an operator asks first, as one JSON-able object; an index that is away is said to be."""
    db = read(config.ledger.path)
    try:
        return _ledger_facts(db, config) | {"index": await _index_facts(db, config)}
    finally:
        db.close()


def _ledger_facts(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    return {
        "running": lock.holder(config.ledger.path),
        "stories": runs.stories_by_language(db),
        "flags": flags.counts(db),
        "candidates_pending": flags.pending_count(db),
        "dead_letters": runs.dead_letters(db),
        "watermark": rfc3339(runs.watermark(db)),
        "fingerprint_version": runs.get(db, "fingerprint_version"),
        "runs": [
            {**run, "started_at": rfc3339(run["started_at"]), "ended_at": rfc3339(run["ended_at"])}
            for run in runs.latest(db, RUNS)
        ],
    }


async def _index_facts(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    kind = config.index.url.partition(":")[0]
    try:
        index = await open_index(config)
    except NeardupError as error:
        return {"kind": kind, "error": str(error)}
    try:
        mark = await index.mark()
        sizes = await index.bucket_sizes(stories.recent(db, SAMPLE))
        return {
            "kind": kind,
            "stories": sum((await index.sizes()).values()),
            "lag": None if mark.applied is None else stories.last_seq(db) - mark.applied,
            "largest_buckets": largest_buckets(sizes),
        }
    except NeardupError as error:
        return {"kind": kind, "error": str(error)}
    finally:
        await index.close()
