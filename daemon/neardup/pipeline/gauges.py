"""The gauges of a run: those whose values are read from the ledger and the index, and the flow through its stages."""

import asyncio
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from neardup.errors import NeardupError
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import (
    Ledger,
    candidates,
    dead_letters,
    outbox,
    runs,
    script_health,
    self_checks,
    stories,
    verdicts,
    verification,
    versions,
    webhook_events,
)
from neardup.ledger.passages import count_missing
from neardup.ledger.self_checks import Measure
from neardup.pages.limits import AdaptiveLimit
from neardup.pages.reader_pool import PROCESSES
from neardup.pipeline.stages import Pipeline
from neardup.records import DECIDING, Language
from neardup.telemetry import metrics

# A sample of n stories misses a bucket that holds a share p of all stories with probability (1 - p)^n, so it finds the
# large buckets: one of .025 is missed by one sample of 150.  Each story takes 40 commands.
SAMPLE = 200
EVERY_SECONDS = 60.0
BUSY_CORES = 0.7 * PROCESSES  # Redis and the system use the rest


async def refresh_gauges(ledger: Ledger, index: Index, passages: PassageIndex) -> None:
    """Set all gauges.  Raises Transient if the index does not answer."""
    disk = shutil.disk_usage(ledger.path.parent)
    metrics.DISK_FREE.set(disk.free)
    metrics.DISK_SIZE.set(disk.total)
    _set_all(metrics.INDEX_STORIES, await index.count_stories())
    _set_all(metrics.LARGEST_BUCKET, await _read_largest_buckets(ledger, index))
    applied = (await index.read_position()).applied or 0
    metrics.INDEX_LAG.set(await ledger.do(outbox.read_last_seq) - applied)
    segments, size, held = await asyncio.to_thread(
        lambda: (len(passages.list_files()), passages.measure_size(), passages.held)
    )
    metrics.PASSAGE_SEGMENTS.set(segments)
    metrics.PASSAGE_BYTES.set(size)
    metrics.PASSAGE_MISSING.set(await ledger.do(count_missing, held))
    metrics.CANDIDATES_PENDING.set(await ledger.do(candidates.count_pending))
    _set_all(metrics.DEAD_LETTERS, await ledger.do(dead_letters.count_by_reason))
    metrics.DEAD_EVENTS.set((await ledger.do(webhook_events.count))[1])
    _set_all(metrics.WORKS, await ledger.do(stories.count_works_by_catalogue))
    _set_all(metrics.COPIES, await ledger.do(stories.count_open_flags_of_works))
    await ledger.do(_set_verdict_gauges)
    await ledger.do(_set_recalls, Measure.CANARY, metrics.CANARY_RECALL, metrics.CANARY_INTERVAL)
    await ledger.do(_set_recalls, Measure.AUDIT, metrics.AUDIT_RECALL, metrics.AUDIT_INTERVAL)
    await ledger.do(_set_script_health_gauges)
    if ended := (await ledger.do(outbox.read_scrubbing)).round_ended_at:
        metrics.SCRUB_ROUND.set(ended / 1000)
    for command, at in (await ledger.do(runs.read_last_successes)).items():
        metrics.LAST_SUCCESS.labels(command).set(at / 1000)


def _set_all(gauge: Any, values: Mapping[Any, float]) -> None:
    """Set a gauge for these labels, one or a tuple of them, and for no others."""
    gauge.clear()
    for labels, value in values.items():
        gauge.labels(*(labels if isinstance(labels, tuple) else (labels,))).set(value)


def _set_verdict_gauges(db: sqlite3.Connection) -> None:
    rows = verdicts.count_verdicts(db)
    pairs = [(row, (row["language"], row["kind"])) for row in rows]
    _set_all(metrics.PRECISION, {labels: 1 - row["not_similar"] / row["judged"] for row, labels in pairs})
    of_verdicts = {(*labels, verdict): row[verdict] for row, labels in pairs for verdict in DECIDING}
    _set_all(metrics.VERDICTS, of_verdicts)  # also without those of a kind whose last verdict was undone
    _set_all(metrics.KEPT_PAIRS, verification.count_suppressed(db))
    _set_all(metrics.IN_CONTEXT, verification.count_in_context(db))


def _set_recalls(db: sqlite3.Connection, measure: Measure, recall: Any, interval: Any) -> None:
    _, measured = self_checks.read_latest_recalls(db, measure) or (0, ())
    shares, ends = dict[tuple[str, str], float](), dict[tuple[str, str, str], float]()
    for result in measured:
        labels = result.recall.language, result.recall.subject
        shares[labels] = result.recall.share
        if self_checks.ALL in labels:
            ends |= {(*labels, "low"): result.interval.low, (*labels, "high"): result.interval.high}
            ends |= {(*labels, "month_low"): result.month.low, (*labels, "month_high"): result.month.high}
    _set_all(recall, shares)
    _set_all(interval, ends)


def _set_script_health_gauges(db: sqlite3.Connection) -> None:
    for measured in script_health.list_latest(db):
        labels = measured.language, measured.measure
        metrics.SCRIPT_HEALTH.labels(*labels).set(measured.mean)
        if measured.band is not None:
            metrics.SCRIPT_HEALTH_LOW.labels(*labels).set(measured.band[0])
            metrics.SCRIPT_HEALTH_HIGH.labels(*labels).set(measured.band[1])


async def keep_gauges(ledger: Ledger, index: Index, passages: PassageIndex) -> None:
    """Set all gauges every EVERY_SECONDS until cancelled; while the index does not answer they keep their values."""
    while True:
        with suppress(NeardupError):
            await refresh_gauges(ledger, index, passages)
        await asyncio.sleep(EVERY_SECONDS)


async def _read_largest_buckets(ledger: Ledger, index: Index) -> dict[Language, int]:
    """By language, the size of the largest bucket that contains one of the stories changed last."""
    largest = Counter[Language]()
    sample = await ledger.do(versions.sample_fingerprints, SAMPLE)
    for bucket, n in (await index.read_bucket_sizes(sample)).items():
        largest[bucket.language] = max(n, largest[bucket.language])
    return largest


@contextmanager
def connect_gauges(pipeline: Pipeline[Any, Any, Any], requests: AdaptiveLimit) -> Iterator[None]:
    """Connect the gauges of queues and requests to a run; they are 0 after it."""
    jobs, outcomes = metrics.QUEUE_DEPTH.labels("jobs"), metrics.QUEUE_DEPTH.labels("outcomes")
    jobs.set_function(pipeline.jobs.qsize)
    outcomes.set_function(pipeline.outcomes.qsize)
    metrics.IN_FLIGHT.set_function(lambda: requests.in_flight)
    metrics.IN_FLIGHT_LIMIT.set_function(lambda: requests.limit)
    try:
        yield
    finally:
        for gauge in (jobs, outcomes, metrics.IN_FLIGHT, metrics.IN_FLIGHT_LIMIT):
            gauge.set_function(int)


def describe_bottleneck(pipeline: Pipeline[Any, Any, Any], requests: AdaptiveLimit) -> str:
    match pipeline.limiting:
        case "source":
            return "the listing"
        case "writer":
            return "the writer: lookups, ledger, index"
        case "workers" if pipeline.cores > BUSY_CORES:
            return f"the processor: parsing and fingerprinting keep {pipeline.cores:.1f} cores busy"
    return f"the object store: {requests.in_flight} requests in flight, {requests.limit} allowed by its latency"
