"""The gauges of a run: those whose values are read from the ledger and the index, and the flow through its stages."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
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
    for language, n in (await index.count_stories()).items():
        metrics.INDEX_STORIES.labels(language).set(n)
    for language, n in (await _read_largest_buckets(ledger, index)).items():
        metrics.LARGEST_BUCKET.labels(language).set(n)
    applied = (await index.read_position()).applied or 0
    metrics.INDEX_LAG.set(await ledger.do(outbox.read_last_seq) - applied)
    await _refresh_passage_gauges(ledger, passages)
    metrics.CANDIDATES_PENDING.set(await ledger.do(candidates.count_pending))
    count_of = await ledger.do(dead_letters.count_by_reason)
    metrics.DEAD_LETTERS.clear()
    for reason, n in count_of.items():
        metrics.DEAD_LETTERS.labels(reason).set(n)
    _, dead_events = await ledger.do(webhook_events.count)
    metrics.DEAD_EVENTS.set(dead_events)
    metrics.WORKS.clear()
    metrics.COPIES.clear()
    for catalogue, n in (await ledger.do(stories.count_works_by_catalogue)).items():
        metrics.WORKS.labels(catalogue).set(n)
    for catalogue, n in (await ledger.do(stories.count_open_flags_of_works)).items():
        metrics.COPIES.labels(catalogue).set(n)
    await ledger.do(_set_verdict_gauges)
    for gauge in (metrics.CANARY_RECALL, metrics.CANARY_INTERVAL, metrics.AUDIT_RECALL, metrics.AUDIT_INTERVAL):
        gauge.clear()
    await ledger.do(_set_recalls, Measure.CANARY, metrics.CANARY_RECALL.labels, metrics.CANARY_INTERVAL.labels)
    await ledger.do(_set_recalls, Measure.AUDIT, metrics.AUDIT_RECALL.labels, metrics.AUDIT_INTERVAL.labels)
    await ledger.do(_set_script_health_gauges)
    if ended := (await ledger.do(outbox.read_scrubbing)).round_ended_at:
        metrics.SCRUB_ROUND.set(ended / 1000)
    for command, at in (await ledger.do(runs.read_last_successes)).items():
        metrics.LAST_SUCCESS.labels(command).set(at / 1000)


async def _refresh_passage_gauges(ledger: Ledger, passages: PassageIndex) -> None:
    segments, size, held = await asyncio.to_thread(
        lambda: (len(passages.list_files()), passages.measure_size(), passages.held)
    )
    metrics.PASSAGE_SEGMENTS.set(segments)
    metrics.PASSAGE_BYTES.set(size)
    metrics.PASSAGE_MISSING.set(await ledger.do(count_missing, held))


def _set_verdict_gauges(db: sqlite3.Connection) -> None:
    for gauge in (metrics.VERDICTS, metrics.PRECISION, metrics.KEPT_PAIRS, metrics.IN_CONTEXT):
        gauge.clear()  # an undone verdict may have been the last of its kind
    for row in verdicts.count_verdicts(db):
        metrics.PRECISION.labels(row["language"], row["kind"]).set(1 - row["not_similar"] / row["judged"])
        for verdict in DECIDING:
            metrics.VERDICTS.labels(row["language"], row["kind"], verdict).set(row[verdict])
    for labels, n in verification.count_suppressed(db).items():
        metrics.KEPT_PAIRS.labels(*labels).set(n)
    for labels, n in verification.count_in_context(db).items():
        metrics.IN_CONTEXT.labels(*labels).set(n)


def _set_recalls(
    db: sqlite3.Connection, measure: Measure, recall: Callable[..., Any], interval: Callable[..., Any]
) -> None:
    """Set what a self-check measured last; `recall` and `interval` give the gauge with some labels."""
    _, measured = self_checks.read_latest_recalls(db, measure) or (0, ())
    for result in measured:
        labels = result.recall.language, result.recall.subject
        recall(*labels).set(result.recall.share)
        if self_checks.ALL in labels:
            bounds = ("low", result.interval.low), ("high", result.interval.high)
            for bound, value in (*bounds, ("month_low", result.month.low), ("month_high", result.month.high)):
                interval(*labels, bound).set(value)


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
    largest: dict[Language, int] = {}
    sample = await ledger.do(versions.sample_fingerprints, SAMPLE)
    for bucket, n in (await index.read_bucket_sizes(sample)).items():
        largest[bucket.language] = max(n, largest.get(bucket.language, 0))
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
    """The bottleneck of a run, described for operators."""
    match pipeline.limiting:
        case "source":
            return "the listing"
        case "writer":
            return "the writer: lookups, ledger, index"
        case "workers" if pipeline.cores > BUSY_CORES:
            return f"the processor: parsing and fingerprinting keep {pipeline.cores:.1f} cores busy"
    return f"the object store: {requests.in_flight} requests in flight, {requests.limit} allowed by its latency"
