"""Every metric, declared once; what is computed from them, and how a single run serves them.

prometheus_client makes them when it is loaded, since its import takes longer than a short command may.  Until then what
happens to them is kept, and done as soon as it is loaded: by what serves or reads the metrics, or once so much is kept
that the command is no short one.
"""

import collections
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from neardup.records import FEW_SHINGLES, RENDERINGS, Dead, Language, MarkReason, Skip
from neardup.telemetry.log import log

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram
    from prometheus_client.metrics import MetricWrapperBase

LIBRARY = "prometheus_client"
MOST_KEPT = 1000
_STAGE_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)

_declared: list["Metric"] = []
_kept: list[Callable[[], object]] = []
_lock = RLock()  # of the two


def call_later(happen: Callable[[], object]) -> None:
    """Call `happen`, now if prometheus_client is loaded, or else when it is."""
    if LIBRARY in sys.modules:
        if _kept or not _declared[0].is_made:
            make_metrics()
        happen()
        return
    with _lock:
        _kept.append(happen)
    if len(_kept) > MOST_KEPT:
        make_metrics()


def make_metrics() -> "list[MetricWrapperBase]":
    """Load prometheus_client, make all metrics, do what was kept, and return the metrics."""
    with _lock:
        made = [metric.made for metric in _declared]
        kept = _kept[:]
        _kept.clear()
        for happen in kept:
            happen()
        return made


class Series:
    """What has a value: a metric without labels, or one series of a metric with labels."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Any:
        """Its counterpart in prometheus_client, which this loads."""
        return self._make()

    @property
    def is_made(self) -> bool:
        """Whether prometheus_client has made it."""
        return "made" in vars(self)

    def inc(self, amount: float = 1) -> None:
        """Do as in prometheus_client; so do the methods below."""
        call_later(lambda: self.made.inc(amount))

    def set(self, value: float) -> None:
        call_later(lambda: self.made.set(value))

    def set_to_current_time(self) -> None:
        self.set(time.time())

    def observe(self, amount: float) -> None:
        call_later(lambda: self.made.observe(amount))

    @contextmanager
    def time(self) -> Iterator[None]:
        """Observe how many seconds the context lasts."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began)

    def __getattr__(self, name: str) -> Any:
        """Anything else is asked of prometheus_client."""
        make_metrics()
        return getattr(self.made, name)


class Metric(Series):
    """A metric, by the name of its class in prometheus_client and what that is made of."""

    def __init__(self, kind: str, *declaration: Any, **options: Any) -> None:
        def make() -> Any:
            import prometheus_client  # noqa: PLC0415 - see above

            return getattr(prometheus_client, kind)(*declaration, **options)

        super().__init__(make)
        _declared.append(self)

    def labels(self, *values: object) -> Any:
        """One series, which is shown from now on."""
        if self.is_made:
            return self.made.labels(*values)
        series = Series(lambda: self.made.labels(*values))
        call_later(lambda: series.made)
        return series

    def clear(self) -> None:
        call_later(lambda: self.made.clear())  # noqa: PLW0108 - not made before then


def observe_all(histogram: Any, amounts: Sequence[float]) -> None:
    """Observe many amounts in a histogram without labels, or one series; it takes little longer than to observe one."""

    def observe() -> None:
        made = histogram.made if isinstance(histogram, Series) else histogram
        bounds = made._upper_bounds  # noqa: SLF001 - the library observes one amount at a time
        for place, count in collections.Counter(bisect_left(bounds, amount) for amount in amounts).items():
            made._buckets[place].inc(count)  # noqa: SLF001 - likewise
        made._sum.inc(sum(amounts))  # noqa: SLF001 - likewise

    call_later(observe)


if not TYPE_CHECKING:
    Counter, Gauge, Histogram = (partial(Metric, kind) for kind in ("Counter", "Gauge", "Histogram"))

STORIES = Counter("neardup_stories_total", "Stories processed, by outcome", ["language", "outcome", "reason"])
MARKED = Counter("neardup_marked_pages_total", "Pages read with something unusual", ["language", "reason"])
PAGES_RENDERED = Counter(
    "neardup_pages_rendered_total",
    "Pages whose styles were computed, by reason and by what did it: native, the library in C, or python, which takes"
    " milliseconds; of the other pages that the stage extract counts only the story was looked at",
    ["reason", "by"],
)
SCRIPT_HEALTH = Gauge(
    "neardup_script_health", "What the texts of the last run are like: the mean of a measure", ["language", "measure"]
)
SCRIPT_HEALTH_LOW = Gauge(
    "neardup_script_health_low", "Lower end of the band that earlier runs give", ["language", "measure"]
)
SCRIPT_HEALTH_HIGH = Gauge(
    "neardup_script_health_high", "Upper end of the band that earlier runs give", ["language", "measure"]
)
FLAGS = Counter("neardup_flags_total", "Pairs flagged", ["language", "kind"])
STAGE_SECONDS = Histogram(
    "neardup_stage_seconds",
    "Duration of a stage: fetch, extract and fingerprint a page; look_up, look_up_passages, nominate, commit, index"
    " and verify a batch",
    ["stage"],
    buckets=_STAGE_SECONDS,
)
CANDIDATES = Histogram("neardup_candidates", "Candidates found by a lookup", ["language"], buckets=_COUNTS)
CAPPED = Counter("neardup_capped_matches_total", "Matches left out by detection.max_matches", ["language"])
LARGE_BUCKETS = Counter(
    "neardup_capped_buckets_total", "Buckets of more than detection.max_bucket members that a lookup read", ["language"]
)
COMMON_PASSAGES = Counter(
    "neardup_common_passages_total",
    "Passage hashes that nominated no candidates, because more than detection.common_passage stories hold them",
    ["language"],
)
NEAR_MISSES = Counter(
    "neardup_near_misses_total", "Candidate pairs verified and found below the thresholds", ["language"]
)
ESTIMATED = Counter(
    "neardup_estimated_total", "Candidate pairs verified by their signatures because a text is gone", ["language"]
)
VERDICTS = Gauge(
    "neardup_verdicts", "Pairs decided by moderators, by their active verdict", ["language", "kind", "verdict"]
)
PRECISION = Gauge(
    "neardup_precision", "Share of the decided pairs whose verdict is not not_similar", ["language", "kind"]
)
OPEN_CASES = Gauge("neardup_open_cases", "Cases that wait for a verdict, as the review desk counts them", ["language"])
OLDEST_OPEN_CASE = Gauge(
    "neardup_oldest_open_case_age_seconds", "How long the oldest open flag of a case has waited; 0 if none waits"
)
UNDECIDED_CASES = Gauge(
    "neardup_undecided_cases",
    "Open cases that a moderator has open now, or for which the moderator asked for a second opinion",
    ["moderator"],
)
OPEN_COMPLAINTS = Gauge("neardup_open_complaints", "Complaints that are not closed")
OVERDUE_COMPLAINTS = Gauge("neardup_overdue_complaints", "Open complaints whose deadline has passed")
UNACKNOWLEDGED_COMPLAINTS = Gauge(
    "neardup_unacknowledged_complaints", "Open complaints that were not acknowledged within review.acknowledge_hours"
)
OLDEST_COMPLAINT = Gauge(
    "neardup_oldest_open_complaint_age_seconds", "How long the oldest open complaint has waited; 0 if none waits"
)
NEXT_DEADLINE = Gauge(
    "neardup_next_complaint_deadline_seconds",
    "Time until the next deadline of an open complaint, negative once it has passed; +Inf if none waits",
)
KEPT_PAIRS = Gauge("neardup_kept_pairs", "Pairs suppressed by a verdict", ["language", "verdict"])
IN_CONTEXT = Gauge(
    "neardup_flags_in_context",
    "Open flags with a story of an earlier verdict, by that verdict",
    ["language", "verdict"],
)
CANDIDATES_PENDING = Gauge("neardup_candidates_pending", "Candidates waiting for verification")
RETRIES = Counter("neardup_retries_total", "Failed attempts that were repeated", ["stage", "reason"])
QUEUE_DEPTH = Gauge("neardup_queue_depth", "Items waiting in a queue", ["queue"])
IN_FLIGHT = Gauge("neardup_requests_in_flight", "Requests to the object store in flight")
IN_FLIGHT_LIMIT = Gauge(
    "neardup_requests_in_flight_limit", "Limit of requests in flight, adapted to the latency of the store"
)
INDEX_STORIES = Gauge("neardup_index_stories", "Stories in the index", ["language"])
INDEX_LAG = Gauge("neardup_index_lag", "Changes in the ledger that the index has not applied")
INDEX_MISSING = Counter("neardup_index_missing_entries_total", "Entries of sampled stories that the index lacked")
INDEX_REPAIRS = Counter(
    "neardup_index_repairs_total", "Repairs of an index that had lost data, by how: restored or rebuilt", ["how"]
)
CANARY_RECALL = Gauge(
    "neardup_canary_recall",
    "Share of the canaries, copies of stories on record, that the live index found after the last daily run",
    ["language", "edit"],
)
CANARY_INTERVAL = Gauge(
    "neardup_canary_recall_interval",
    "Ends of the interval of neardup_canary_recall (low, high) and of that of the 30 days before (month_low,"
    " month_high), for one language or one edit and all of the other",
    ["language", "edit", "bound"],
)
AUDIT_RECALL = Gauge(
    "neardup_audit_recall",
    "Share of the pairs that the last audit found by an exhaustive scan, and that are flagged; with the tier index"
    " entries, of the stories whose buckets all hold them",
    ["language", "tier"],
)
AUDIT_INTERVAL = Gauge(
    "neardup_audit_recall_interval",
    "Ends of the interval of neardup_audit_recall, as in neardup_canary_recall_interval",
    ["language", "tier", "bound"],
)
SCRUBBED = Counter("neardup_index_scrubbed_stories_total", "Stories that the scrub compared with their buckets")
SCRUB_ROUND = Gauge(
    "neardup_index_scrub_round_timestamp_seconds", "When the scrub last had compared every story with its buckets"
)
LARGEST_BUCKET = Gauge(
    "neardup_largest_bucket", "Members of the largest band bucket of a sample of stories", ["language"]
)
PASSAGE_SEGMENTS = Gauge("neardup_passage_segments", "Segments of the passage index")
PASSAGE_BYTES = Gauge("neardup_passage_bytes", "Size of the segments of the passage index")
PASSAGE_MISSING = Gauge(
    "neardup_passage_missing_stories",
    "Stories that the passage index lacks, whose pages the next run reads again; counted to 1,000,000",
)
PASSAGE_DAMAGE = Counter("neardup_passage_damage_total", "Segments of the passage index that were found damaged")
PASSAGES_READ_AGAIN = Counter(
    "neardup_passage_stories_read_again_total", "Stories read again for the passage index, by result", ["result"]
)
HTTP_REQUESTS = Counter(
    "neardup_http_requests_total", "Requests to the HTTP service, by route and status", ["method", "route", "status"]
)
HTTP_SECONDS = Histogram(
    "neardup_http_request_seconds",
    "Duration of a request to the HTTP service",
    ["method", "route"],
    buckets=_HTTP_SECONDS,
)
CHECKS = Counter(
    "neardup_checks_total",
    "Stories that the HTTP service checked, by verdict; estimated: whether a part of the evidence was missing",
    ["verdict", "estimated"],
)
DISK_FREE = Gauge("neardup_ledger_disk_free_bytes", "Free bytes on the file system of the ledger")
DISK_SIZE = Gauge("neardup_ledger_disk_size_bytes", "Size of the file system of the ledger")
DEAD_LETTERS = Gauge("neardup_dead_letters", "Dead letters on record", ["reason"])
DEAD_EVENTS = Gauge("neardup_dead_webhook_events", "Events that no webhook took")
WORKS = Gauge("neardup_reference_works", "Works of the reference on record", ["catalogue"])
COPIES = Gauge("neardup_reference_open_flags", "Open flags of copies of works of the reference", ["catalogue"])
LAST_SUCCESS = Gauge("neardup_last_success_timestamp_seconds", "When a run or a backup last succeeded", ["command"])
STARTED = Gauge("neardup_started_timestamp_seconds", "When this process started, by its command", ["command"])
RUN_FAILURES = Counter("neardup_run_failures_total", "Runs that ended with an error", ["command"])
WAITING = Gauge("neardup_waiting", "1 while a run waits for a service that fails", ["what"])
RUNNING = Gauge("neardup_running", "1 while a run is in progress", ["command"])


def read_stage_seconds() -> dict[str, list[float]]:
    """Stage -> its cumulative counts by histogram bucket, then its total seconds, since the process started."""
    totals: dict[str, list[float]] = {}
    for sample in next(iter(STAGE_SECONDS.collect())).samples:
        if sample.name.endswith(("_bucket", "_sum")):  # the buckets are in order, and before the sum
            totals.setdefault(sample.labels["stage"], []).append(sample.value)
    return totals


def measure_latencies(before: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """By stage since `read_stage_seconds` returned `before`: its count, its total and its quantiles, in seconds.

    A quantile is interpolated in the histogram, logarithmically between two bounds.
    """
    facts: dict[str, dict[str, float]] = {}
    for stage, now in read_stage_seconds().items():
        *upto, seconds = [new - old for new, old in zip(now, before.get(stage, [0.0] * len(now)), strict=True)]
        if upto[-1]:
            facts[stage] = {"times": int(upto[-1]), "seconds": round(seconds, 6)} | {
                name: _estimate_quantile(upto, share) for name, share in QUANTILES.items()
            }
    return facts


def _estimate_quantile(upto: Sequence[float], share: float) -> float:
    wanted = share * upto[-1]
    n = next(n for n, times in enumerate(upto) if times >= wanted)
    if n == len(_STAGE_SECONDS):
        return _STAGE_SECONDS[-1]
    high = _STAGE_SECONDS[n]
    low, below = (_STAGE_SECONDS[n - 1], upto[n - 1]) if n else (high / 3, 0.0)
    return float(f"{low * (high / low) ** ((wanted - below) / (upto[n] - below)):.3g}")


def create_series(languages: Iterable[Language], kinds: Sequence[str]) -> None:
    """Show the counters of these at zero: Prometheus sees no increase in a counter's first value."""
    call_later(partial(_create_series, tuple(languages), kinds))


def _create_series(languages: Sequence[Language], kinds: Sequence[str]) -> None:
    for language in languages:
        for reason in ("", FEW_SHINGLES):
            STORIES.labels(language, "fingerprinted", reason)
        CANDIDATES.labels(language)
        for counter in (CAPPED, LARGE_BUCKETS, COMMON_PASSAGES, NEAR_MISSES, ESTIMATED):
            counter.labels(language)
        for skip in Skip:
            STORIES.labels(language, "skipped", skip)
        for dead in Dead:
            STORIES.labels(language, "dead_lettered", dead)
        for mark in MarkReason:
            MARKED.labels(language, mark)
        for kind in kinds:
            FLAGS.labels(language, kind)


@call_later
def _create_other_series() -> None:
    for command in ("backfill", "daily", "sweep", "retry"):
        RUN_FAILURES.labels(command)
    for how in ("restored", "rebuilt"):
        INDEX_REPAIRS.labels(how)
    for result in ("read", "changed", *Skip, *Dead):
        PASSAGES_READ_AGAIN.labels(result)
    for rendering in RENDERINGS:
        PAGES_RENDERED.labels(*rendering)
    for what in ("index", "start"):
        WAITING.labels(what)


def serve_metrics(listen: str, command: str) -> None:
    """Serve /metrics on HOST:PORT, in a thread, until the process ends; an address that is taken is only a warning.

    Commands share the port with the daemon, and the label `command` distinguishes them in alerts.  The server of
    prometheus_client starts 0.2 s faster than the application of the daemon.
    """
    from prometheus_client import start_http_server  # noqa: PLC0415 - loads slowly

    make_metrics()
    STARTED.labels(command).set_to_current_time()
    host, _, port = listen.rpartition(":")
    try:
        start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        log.warning("no /metrics for this run", why=f"metrics.listen: cannot listen on {listen}: {error.strerror}")
