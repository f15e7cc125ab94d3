"""Reads the figures of the report from the ledger and the index."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from neardup.app import open_index
from neardup.config import Config
from neardup.errors import NeardupError
from neardup.index.protocol import BucketKind, read_bucket_sizes
from neardup.ledger import changes, read, runs, snapshot, translate_errors
from neardup.pipeline.gauges import SAMPLE

BINS = 50  # bins of a score from 0 to 1
RUNS = 50  # latest runs, searched for one with recorded latencies
SCORES = {
    "jaccard": "jaccard",
    "containment": "max(containment_a, containment_b)",
}


class PairCounts(NamedTuple):
    """The numbers of flagged pairs and of near misses, by a figure of the pair."""

    flagged: dict[int, int]
    near_misses: dict[int, int]


class Facts(NamedTuple):
    """The figures of the report.

    `days` counts flags by day (2026-11-20) and kind, `kinds` by language and kind.  `hamming` counts pairs by differing
    bits, `scores` by BINS equal bins.  `buckets` counts the buckets of the latest stories by number of members, for
    SimHash and signature.  `stages` are the latencies of `run`, as `metrics.latencies` returns them.
    """

    days: dict[tuple[str, str], int]
    kinds: dict[tuple[str, str], int]
    hamming: PairCounts
    scores: dict[str, PairCounts]
    buckets: dict[str, Counter[int]]
    stages: dict[str, dict[str, float]]
    run: Mapping[str, Any] | None
    stories: int


async def read_facts(config: Config) -> Facts:
    """Read the figures; without buckets if the index does not answer.  Raises Fatal if there is no ledger."""
    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path):
        buckets = await _buckets(config, db)
        with snapshot(db):
            last = next((run for run in runs.latest(db, RUNS) if run["counts"].get("stages")), None)
            return Facts(
                days=_flags(db, "date(flagged_at / 1000, 'unixepoch')"),
                kinds=_flags(db, "language"),
                hamming=_pair_counts(db, "hamming"),
                scores={
                    name: _pair_counts(db, f"min(CAST({score} * {BINS} AS INTEGER), {BINS - 1})")
                    for name, score in SCORES.items()
                },
                buckets=buckets,
                stages=last["counts"]["stages"] if last else {},
                run=last,
                stories=sum(runs.stories_by_language(db).values()),
            )


def _flags(db: sqlite3.Connection, by: str) -> dict[tuple[str, str], int]:
    """Count the flags that are not withdrawn, by an SQL expression and by kind."""
    rows = db.execute(f"SELECT {by}, kind, count(*) FROM pairs WHERE status <> 'withdrawn' GROUP BY 1, 2 ORDER BY 1, 2")
    return {(one, kind): n for one, kind, n in rows}


def _pair_counts(db: sqlite3.Connection, by: str) -> PairCounts:
    def counted(table: str) -> dict[int, int]:
        return dict(db.execute(f"SELECT {by}, count(*) FROM {table} AND {by} IS NOT NULL GROUP BY 1 ORDER BY 1"))

    return PairCounts(counted("flags WHERE status <> 'withdrawn'"), counted("candidates WHERE verified_at IS NOT NULL"))


async def _buckets(config: Config, db: sqlite3.Connection) -> dict[str, Counter[int]]:
    try:
        index = await open_index(config)
        try:
            sizes = await read_bucket_sizes(index, changes.recent(db, SAMPLE))
        finally:
            await index.close()
    except NeardupError:
        return {}
    counts: dict[str, Counter[int]] = {kind.value: Counter() for kind in BucketKind}
    for bucket, members in sizes.items():
        counts[bucket.kind.value][members] += 1
    return counts
