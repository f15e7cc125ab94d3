"""Every metric, declared once."""

from collections.abc import Iterable, Sequence

from prometheus_client import Counter, Gauge, Histogram

from neardup.core.fingerprint.minhash import FEW_SHINGLES
from neardup.languages import LANGUAGES
from neardup.records import Dead, Kind, Language, Skip

_STAGE_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)

STORIES = Counter("neardup_stories_total", "Stories that ended, by outcome", ["language", "outcome", "reason"])
FLAGS = Counter("neardup_flags_total", "Pairs flagged", ["language", "kind"])
STAGE_SECONDS = Histogram(
    "neardup_stage_seconds",
    "Time a stage took: fetch, extract and fingerprint a story; look_up, nominate, commit, index and verify a batch",
    ["stage"],
    buckets=_STAGE_SECONDS,
)
CANDIDATES = Histogram("neardup_candidates", "Candidates a lookup nominated", ["language"], buckets=_COUNTS)
CAPPED = Counter("neardup_capped_matches_total", "Matches left out by detection.max_matches", ["language"])
CAPPED_BUCKETS = Counter(
    "neardup_capped_buckets_total", "Buckets of which a lookup left members out, by detection.max_bucket", ["language"]
)
NEAR_MISSES = Counter("neardup_near_misses_total", "Pairs judged and kept below the thresholds", ["language"])
ESTIMATED = Counter("neardup_estimated_total", "Pairs judged by their signatures, a text being gone", ["language"])
VERDICTS = Gauge("neardup_verdicts", "Pairs judged by moderators, by what stands", ["language", "kind", "verdict"])
PRECISION = Gauge(
    "neardup_precision", "Share of the judged pairs that were not judged not_similar", ["language", "kind"]
)
KEPT_PAIRS = Gauge("neardup_kept_pairs", "Pairs that a verdict keeps from being flagged", ["language", "verdict"])
IN_CONTEXT = Gauge(
    "neardup_flags_in_context",
    "Open flags of which a story was judged before, by that verdict",
    ["language", "verdict"],
)
CANDIDATES_PENDING = Gauge("neardup_candidates_pending", "Candidates that wait to be judged")
RETRIES = Counter("neardup_retries_total", "Attempts that failed and were tried again", ["stage", "reason"])
QUEUE_DEPTH = Gauge("neardup_queue_depth", "Items waiting in a queue", ["queue"])
IN_FLIGHT = Gauge("neardup_requests_in_flight", "Requests to the object store under way")
IN_FLIGHT_LIMIT = Gauge("neardup_requests_in_flight_limit", "How many there may be, as the store's latency allows")
INDEX_STORIES = Gauge("neardup_index_stories", "Stories in the index", ["language"])
INDEX_LAG = Gauge("neardup_index_lag", "Changes in the ledger that the index has not applied")
LARGEST_BUCKET = Gauge("neardup_largest_bucket", "Members of the largest band bucket met by a sample", ["language"])
DISK_FREE = Gauge("neardup_ledger_disk_free_bytes", "Room on the file system of the ledger")
DISK_SIZE = Gauge("neardup_ledger_disk_size_bytes", "Size of the file system of the ledger")
DEAD_LETTERS = Gauge("neardup_dead_letters", "Dead letters on record", ["reason"])
LAST_SUCCESS = Gauge("neardup_last_success_timestamp_seconds", "When a run, or a backup, last ended well", ["command"])
RUN_FAILURES = Counter("neardup_run_failures_total", "Runs that ended with an error", ["command"])
WAITING = Gauge("neardup_waiting", "1 while a run waits for what does not answer, or refuses", ["what"])
RUNNING = Gauge("neardup_running", "1 while a run is under way", ["command"])


def stage_seconds() -> dict[str, list[float]]:
    """Stage -> how many times it took up to each bound of the histogram, then its seconds in all, so far."""
    taken: dict[str, list[float]] = {}
    for sample in next(iter(STAGE_SECONDS.collect())).samples:
        if sample.name.endswith(("_bucket", "_sum")):  # the buckets are in order, and before the sum
            taken.setdefault(sample.labels["stage"], []).append(sample.value)
    return taken


def latencies(before: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """What the stages took since `stage_seconds` gave `before`: how many times, seconds in all, quantiles in seconds.

    A quantile is read off the histogram, which is taken to be even in the logarithm between two bounds.
    """
    facts: dict[str, dict[str, float]] = {}
    for stage, now in stage_seconds().items():
        *upto, seconds = [new - old for new, old in zip(now, before.get(stage, [0.0] * len(now)), strict=True)]
        if upto[-1]:
            facts[stage] = {"times": int(upto[-1]), "seconds": round(seconds, 6)} | {
                name: _quantile(upto, share) for name, share in QUANTILES.items()
            }
    return facts


def _quantile(upto: Sequence[float], share: float) -> float:
    wanted = share * upto[-1]
    n = next(n for n, times in enumerate(upto) if times >= wanted)
    if n == len(_STAGE_SECONDS):
        return _STAGE_SECONDS[-1]
    high = _STAGE_SECONDS[n]
    low, below = (_STAGE_SECONDS[n - 1], upto[n - 1]) if n else (high / 3, 0.0)
    return float(f"{low * (high / low) ** ((wanted - below) / (upto[n] - below)):.3g}")


def show(languages: Iterable[Language]) -> None:
    """Show the counters of these languages at zero: Prometheus sees no increase in a counter's first value."""
    for language in languages:
        for reason in ("", FEW_SHINGLES):
            STORIES.labels(language, "fingerprinted", reason)
        CANDIDATES.labels(language)
        for counter in (CAPPED, CAPPED_BUCKETS, NEAR_MISSES, ESTIMATED):
            counter.labels(language)
        for skip in Skip:
            STORIES.labels(language, "skipped", skip)
        for dead in Dead:
            STORIES.labels(language, "dead_lettered", dead)
        for kind in Kind:
            FLAGS.labels(language, kind)


show(LANGUAGES)
for _command in ("backfill", "daily", "sweep", "retry"):
    RUN_FAILURES.labels(_command)
for _what in ("index", "start"):
    WAITING.labels(_what)
