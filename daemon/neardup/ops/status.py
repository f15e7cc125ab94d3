"""The state of ledger and index, as `neardup status` shows it: the largest clusters, the last self-checks and so on."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from neardup.app import open_index
from neardup.config import Config, Detection
from neardup.config.schedule import find_next_run
from neardup.errors import NeardupError
from neardup.index.passages.folder import SegmentFile, list_segments, open_segment
from neardup.index.passages.postings import join_ranges
from neardup.ledger import (
    candidates,
    cases,
    dead_letters,
    files,
    flags,
    lock,
    marks,
    open_snapshot,
    outbox,
    passages,
    runs,
    script_health,
    self_checks,
    stories,
    story_rows,
    submissions,
    verdicts,
    verification,
    versions,
    webhook_events,
)
from neardup.ledger.cases import OpenCases
from neardup.ledger.languages import count_by_language
from neardup.ledger.marks import MarkCount
from neardup.ledger.outbox import Scrubbing
from neardup.ledger.self_checks import Compared, Measure
from neardup.ledger.stories import Catalogue
from neardup.ledger.verification import count_near_misses
from neardup.pipeline import submitted_pages
from neardup.records import DECIDING, ShownId, format_count, format_time

CLUSTERS = 5
RUNS = 5
BUCKETS = 10
SAMPLE = 500  # of the latest stories, whose buckets are looked at
ANSWER_SECONDS = 5
EXAMPLES = 5  # common passages


class Edge(Struct, frozen=True):
    """Two stories of a cluster that a flag connects, and the similarity of the pair."""

    a: ShownId
    b: ShownId
    similarity: float


class Distance(Struct, frozen=True):
    """Two stories of a cluster; the shortest path between them has `steps` flags."""

    a: ShownId
    b: ShownId
    steps: int


class ClusterStatus(Struct, frozen=True):
    """A cluster; it is a `chain` if its two most distant stories have little in common.

    `likely_original` is the story that was published before all others; None if that is not known.
    """

    likely_original: ShownId | None
    size: int
    weakest_edge: Edge
    furthest_apart: Distance
    chain: bool


class ClusterCounts(Struct, frozen=True):
    """The number of clusters, and the largest of them."""

    count: int
    largest: list[ClusterStatus]


def count_clusters(db: sqlite3.Connection, detection: Detection) -> ClusterCounts:
    """The clusters of the open flags, of which the largest CLUSTERS are described."""
    every = flags.find_clusters(db)
    described = every[:CLUSTERS]
    named = ((cluster.stories[0], *cluster.weakest[:2], *cluster.ends) for cluster in described)
    shown = story_rows.read_shown_ids(db, chain.from_iterable(named))
    largest = [
        ClusterStatus(
            likely_original=None if cluster.earliest is None else shown[cluster.earliest],
            size=len(cluster.stories),
            weakest_edge=Edge(shown[a], shown[b], round(score, 4)),
            furthest_apart=Distance(shown[cluster.ends[0]], shown[cluster.ends[1]], cluster.steps),
            chain=cluster.steps > 1 and not _is_worth_comparing(db, detection, *cluster.ends),
        )
        for cluster in described
        for a, b, score in [cluster.weakest]
    ]
    return ClusterCounts(len(every), largest)


def _is_worth_comparing(db: sqlite3.Connection, detection: Detection, a: int, b: int) -> bool:
    """Whether two stories pass the screening of candidates."""
    from neardup.core.candidates.select import is_worth_comparing  # noqa: PLC0415 - few clusters are chains

    fingerprints = stories.read_fingerprints(db, [a, b])
    return is_worth_comparing(fingerprints[a], fingerprints[b], detection.of(fingerprints[a].language))


class RecallOf(Struct, frozen=True):
    """How many of some copies were found; `fewer_than_before` is when clearly more were found in the month before."""

    language: str
    subject: str
    found: int
    total: int
    fewer_than_before: bool


class RecallStatus(Struct, frozen=True):
    """A self-check: when it measured last (RFC 3339), and the recall of each language and subject."""

    measure: str
    measured_at: str | None
    recalls: list[RecallOf]


def _read_self_checks(db: sqlite3.Connection) -> list[RecallStatus]:
    """The last measurement of each self-check that ever measured."""
    found = []
    for measure in Measure:
        if (latest := self_checks.read_latest_recalls(db, measure)) is not None:
            measured_at, recalls = latest
            found.append(RecallStatus(measure, format_time(measured_at), list(map(_make_recall, recalls))))
    return found


def _make_recall(compared: Compared) -> RecallOf:
    recall = compared.recall
    return RecallOf(recall.language, recall.subject, recall.found, recall.total, compared.is_lower)


class Waiting(Struct, frozen=True):
    """What a run waits for, the error that makes it wait, and since when (RFC 3339)."""

    what: str
    why: str
    since: str | None


class VerdictCounts(Struct, frozen=True):
    """Counts by verdict: decided pairs, suppressed pairs, and open flags that name the verdict as their context."""

    judged: dict[str, int]
    kept: dict[str, int]
    in_context: dict[str, int]


class IndexStatus(Struct, frozen=True):
    """The state of an index that answers.

    `lag` is the number of changes still to be applied, None if the index was never filled.  `hottest_buckets` are the
    largest buckets and their members.
    """

    kind: str
    stories: int
    lag: int | None
    hottest_buckets: dict[str, int]


class UnavailableIndex(Struct, frozen=True):
    """The error of an index that gives no status."""

    kind: str
    error: str


# What is kept beside the ledger: the passage index, the works of the reference, the pages of submitted stories


class PassageStatus(Struct, frozen=True):
    """What the passage index holds.

    `stories` are those in segments, with former versions that no merge has dropped yet; `waiting` those that are in the
    ledger's outbox; `missing` those whose pages are to be read again, counted to 1,000,000.  `common` counts the common
    passages by language; `examples` has those that the most stories hold, each with a story that holds it.
    """

    stories: int
    segments: int
    bytes: int
    waiting: int
    missing: int
    common: dict[str, int]
    examples: list[dict[str, Any]]


def _read_passage_status(db: sqlite3.Connection, ledger: Path) -> PassageStatus | UnavailableIndex:
    folder, recorded = files.name_passages_folder(ledger), runs.get(db, "fingerprint_version")
    try:
        segments = _list_segments(folder, runs.get(db, "ledger_id") or "", recorded.split()[0]) if recorded else []
    except NeardupError as error:  # such as for the passages of another ledger
        return UnavailableIndex("passages", str(error))
    return PassageStatus(
        stories=sum(file.segment.header.stories for file in segments if file.segment),
        segments=len(segments),
        bytes=sum(file.path.stat().st_size for file in segments),
        waiting=passages.count_unflushed(db),
        missing=passages.count_missing(db, join_ranges((file.first, file.last) for file in segments)),
        common=passages.count_common(db),
        examples=[
            {key: row[key] for key in ("language", "holders", "example", "example_title")}
            for row in passages.list_common(db, EXAMPLES)
        ],
    )


def _list_segments(folder: Path, ledger_id: str, algorithm: str) -> list[SegmentFile]:
    """The segments in a folder, as `PassageIndex` opens them; listed again if another process merges some meanwhile."""
    while True:
        with suppress(FileNotFoundError):
            return [open_segment(file, ledger_id, algorithm) for file in list_segments(folder)]


class SubmissionStatus(Struct, frozen=True):
    """The submitted pages on disk, the submitted stories still to be looked up once more, and the forgotten stories."""

    pages: int
    unsettled: int
    forgotten: int


def _read_submission_status(db: sqlite3.Connection, ledger: Path) -> SubmissionStatus:
    return SubmissionStatus(
        len(submitted_pages.list_files(ledger)), submissions.count_unsettled(db), stories.count_forgotten(db)
    )


def explain_missing_section(count: int) -> str | None:
    """What follows if so many works are on record, but no [reference] is configured; None if there are none."""
    if not count:
        return None
    on_record = format_count(count, "work is", "works are")
    return (
        f"{on_record} on record, but the configuration has no [reference]: their pages cannot be read, so new"
        " copies that changed a word are only estimated, and copied passages are not found; put [reference] back, or"
        " run `neardup reference remove NAME`"
    )


# The whole


class Status(Struct, frozen=True):
    """What `neardup status` shows; its fields are the keys of its JSON object, times are RFC 3339.

    `running` is the command that works now, with its `progress`, a `pipeline.summary.Report`; `daemon` has `next_run`,
    when the daemon begins its next run.  `canaries` is `run.canaries`, and what they found is among the `self_checks`.
    """

    running: dict[str, Any] | None
    daemon: dict[str, Any] | None
    waiting: Waiting | None
    stories: dict[str, int]
    flags: dict[str, dict[str, int]]
    cases: OpenCases
    verdicts: VerdictCounts
    clusters: ClusterCounts
    candidates_pending: int
    near_misses: int
    dead_letters: dict[str, int]
    webhook_events: dict[str, int]
    reference: list[Catalogue]
    reference_warning: str | None
    marks: list[MarkCount]
    unusual_texts: list[str]
    submissions: SubmissionStatus
    sweep_owed: bool
    watermark: str | None
    fingerprint_version: str | None
    canaries: int
    self_checks: list[RecallStatus]
    runs: list[dict[str, Any]]
    index: IndexStatus | UnavailableIndex
    scrub: Scrubbing
    passages: PassageStatus | UnavailableIndex


async def collect_status(config: Config) -> Status:
    """Return the state of ledger and index, which may be unavailable.  Raises Fatal if there is no ledger."""
    with open_snapshot(config.ledger.path) as db:
        running = lock.read_holder(config.ledger.path)
        return Status(
            running=running,
            daemon=_read_daemon(db, config),
            waiting=_describe_waiting(db, running),
            stories=count_by_language(db),
            flags=flags.count_open_flags(db, same_author=config.detection.same_author == "keep"),
            cases=cases.count_open_cases(db),
            verdicts=_count_verdicts(db),
            clusters=count_clusters(db, config.detection),
            candidates_pending=candidates.count_pending(db),
            near_misses=count_near_misses(db),
            dead_letters=dead_letters.count_by_reason(db),
            webhook_events=dict(zip(("waiting", "dead"), webhook_events.count(db), strict=True)),
            reference=stories.list_catalogues(db),
            reference_warning=None if config.reference else explain_missing_section(stories.count_works(db)),
            marks=marks.mark_counts(db),
            unusual_texts=list(map(str, script_health.list_unusual(db))),
            submissions=_read_submission_status(db, config.ledger.path),
            sweep_owed=runs.owes_sweep(db),
            watermark=format_time(runs.read_watermark(db)),
            fingerprint_version=(runs.get(db, "fingerprint_version") or "").partition(" ")[0] or None,
            canaries=config.run.canaries,
            self_checks=_read_self_checks(db),
            runs=[
                {**run, "started_at": format_time(run["started_at"]), "ended_at": format_time(run["ended_at"])}
                for run in runs.list_latest(db, RUNS)
            ],
            index=await _read_index_status(db, config),
            scrub=outbox.read_scrubbing(db),
            passages=_read_passage_status(db, config.ledger.path),
        )


def _read_daemon(db: sqlite3.Connection, config: Config) -> dict[str, Any] | None:
    holder = lock.read_daemon(config.ledger.path)
    if holder is None:
        return None
    succeeded_at = runs.read_last_successes(db).get("daily")
    last_success = datetime.fromtimestamp(succeeded_at / 1000, UTC) if succeeded_at else None
    due_at = find_next_run(config.run.schedule, last_success, datetime.now(UTC))
    return {**holder, "next_run": format_time(int(due_at.timestamp() * 1000))}


def _describe_waiting(db: sqlite3.Connection, running: dict[str, Any] | None) -> Waiting | None:
    waiting = running and runs.read_wait(db, running.get("pid", 0))
    return Waiting(waiting["what"], waiting["why"], format_time(waiting["since"])) if waiting else None


def _count_verdicts(db: sqlite3.Connection) -> VerdictCounts:
    judged = verdicts.count_verdicts(db)
    return VerdictCounts(
        judged={verdict: n for verdict in DECIDING if (n := sum(row[verdict] for row in judged))},
        kept=_sum_by_verdict(verification.count_suppressed(db)),
        in_context=_sum_by_verdict(verification.count_in_context(db)),
    )


def _sum_by_verdict(counts: dict[tuple[str, str], int]) -> dict[str, int]:
    tally: Counter[str] = Counter()
    for (_, verdict), n in counts.items():
        tally[verdict] += n
    return dict(tally)


async def _read_index_status(db: sqlite3.Connection, config: Config) -> IndexStatus | UnavailableIndex:
    kind = config.index.url.partition(":")[0]
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await _read_index(db, config, kind)
    except TimeoutError:
        return UnavailableIndex(kind, f"no answer for {ANSWER_SECONDS} seconds")
    except NeardupError as error:
        return UnavailableIndex(kind, str(error))


async def _read_index(db: sqlite3.Connection, config: Config, kind: str) -> IndexStatus:
    index = await open_index(config)
    try:
        position = await index.read_position()
        sizes = await index.read_bucket_sizes(versions.sample_fingerprints(db, SAMPLE))
        largest = sorted((-n, str(bucket)) for bucket, n in sizes.items())[:BUCKETS]
        return IndexStatus(
            kind,
            stories=sum((await index.count_stories()).values()),
            lag=None if position.applied is None else outbox.read_last_seq(db) - position.applied,
            hottest_buckets={bucket: -n for n, bucket in largest},
        )
    finally:
        await index.close()
