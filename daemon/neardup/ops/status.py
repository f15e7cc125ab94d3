"""How neardup stands, read off the ledger and the index."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

from neardup.app import open_index
from neardup.config import Config
from neardup.core.candidates.select import worth_comparing
from neardup.errors import NeardupError
from neardup.ledger import (
    candidates,
    changes,
    clusters,
    flags,
    lock,
    read,
    remembered_verdicts,
    runs,
    snapshot,
    stories,
    translated,
    verdicts,
)
from neardup.pipeline.gauges import SAMPLE
from neardup.records import Verdict
from neardup.timestamps import rfc3339

RUNS = 5
CLUSTERS = 5
BUCKETS = 10
ANSWER_SECONDS = 5


async def status(config: Config) -> dict[str, Any]:
    """Everything an operator asks first, as one JSON-able object; an index that is away is said to be."""
    with closing(read(config.ledger.path)) as db, translated(config.ledger.path):
        return _ledger_facts(db, config) | {"index": await _index_facts(db, config)}


def _ledger_facts(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    running = lock.holder(config.ledger.path)
    return {
        "running": running,
        "waiting": _waiting_facts(db, running),
        "stories": runs.stories_by_language(db),
        "flags": flags.counts(db),
        "verdicts": _verdict_facts(db),
        "clusters": _cluster_facts(db, config),
        "candidates_pending": candidates.pending_count(db),
        "near_misses": candidates.near_miss_count(db),
        "dead_letters": runs.dead_letters(db),
        "sweep_owed": runs.owes_sweep(db),
        "watermark": rfc3339(runs.watermark(db)),
        "fingerprint_version": (runs.get(db, "fingerprint_version") or "").partition(" ")[0] or None,
        "runs": [
            {**run, "started_at": rfc3339(run["started_at"]), "ended_at": rfc3339(run["ended_at"])}
            for run in runs.latest(db, RUNS)
        ],
    }


def _waiting_facts(db: sqlite3.Connection, running: dict[str, Any] | None) -> dict[str, Any] | None:
    waiting = running and runs.waiting(db, running.get("pid", 0))
    return waiting and {"what": waiting["what"], "why": waiting["why"], "since": rfc3339(waiting["since"])}


def _verdict_facts(db: sqlite3.Connection) -> dict[str, Any]:
    """Pairs by the verdict that stands; those that one keeps from being flagged; open flags with one for context."""
    judged = verdicts.precision(db)
    return {
        "judged": {verdict: n for verdict in Verdict if (n := sum(row[verdict] for row in judged))},
        "kept": _by_verdict(remembered_verdicts.kept_counts(db)),
        "in_context": _by_verdict(remembered_verdicts.context_counts(db)),
    }


def _by_verdict(counts: dict[tuple[str, str], int]) -> dict[str, int]:
    tally: Counter[str] = Counter()
    for (_, verdict), n in counts.items():
        tally[verdict] += n
    return dict(tally)


def _cluster_facts(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    with snapshot(db):
        found = clusters.of_flags(db)
        return {
            "count": len(found),
            "largest": [
                {
                    "likely_original": cluster.stories[0],
                    "size": len(cluster.stories),
                    "weakest_edge": {"a": a, "b": b, "score": round(score, 4)},
                    "furthest_apart": {"a": cluster.ends[0], "b": cluster.ends[1], "steps": cluster.steps},
                    "chain": cluster.steps > 1 and not _alike(db, config, *cluster.ends),
                }
                for cluster in found[:CLUSTERS]
                for a, b, score in [cluster.weakest]
            ],
        }


def _alike(db: sqlite3.Connection, config: Config, a: int, b: int) -> bool:
    """Whether two stories would have been nominated, had their bands met."""
    found = stories.fingerprints(db, [a, b])
    one, other = found[a], found[b]
    return worth_comparing(one, other, config.detection.of(one.language))


async def _index_facts(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    kind = config.index.url.partition(":")[0]
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return {"kind": kind, **await _asked(db, config)}
    except TimeoutError:
        return {"kind": kind, "error": f"no answer for {ANSWER_SECONDS} seconds"}
    except NeardupError as error:
        return {"kind": kind, "error": str(error)}


async def _asked(db: sqlite3.Connection, config: Config) -> dict[str, Any]:
    index = await open_index(config)
    try:
        mark = await index.mark()
        sizes = await index.bucket_sizes(changes.recent(db, SAMPLE))
        return {
            "stories": sum((await index.sizes()).values()),
            "lag": None if mark.applied is None else changes.last_seq(db) - mark.applied,
            "hottest_buckets": dict(sorted(sizes.items(), key=lambda bucket: (-bucket[1], bucket[0]))[:BUCKETS]),
        }
    finally:
        await index.close()
