"""The progress of a run, for a progress bar or a log line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from neardup.pages.limits import AdaptiveLimit
from neardup.pages.reader_pool import PROCESSES
from neardup.pipeline.stages import Pipeline
from neardup.pipeline.summary import Counts
from neardup.telemetry.metrics import IN_FLIGHT, IN_FLIGHT_LIMIT, QUEUE_DEPTH

Phase = Literal[
    "reading passages again",
    "reading",
    "importing",
    "building the index",
    "comparing",
    "comparing passages",
    "verifying",
]


@dataclass(slots=True)
class Progress:
    """The counts of a run so far, its phase, and its position in it.

    A position and a size are in bytes of the listing while `reading`, in stories while `reading passages again`,
    `importing`, `building the index`, `comparing` or `comparing passages`, and in pairs while `verifying`.  A size of 0
    is unknown.
    """

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0
    phase: Phase = "reading"

    def enter(self, phase: Phase, size: int = 0, position: int = 0) -> None:
        """Begin a phase."""
        self.phase, self.size, self.position = phase, size, position


Watch = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Ignore the progress."""


# The throughput of a run: the queues before its stages, and the stage that limits it.

BUSY_CORES = 0.7 * PROCESSES  # Redis and the system use the rest


@contextmanager
def flow_gauges(pipeline: Pipeline[Any, Any, Any], requests: AdaptiveLimit) -> Iterator[None]:
    """Connect the gauges of queues and requests to a run; they are 0 after it."""
    jobs, outcomes = QUEUE_DEPTH.labels("jobs"), QUEUE_DEPTH.labels("outcomes")
    jobs.set_function(pipeline.jobs.qsize)
    outcomes.set_function(pipeline.outcomes.qsize)
    IN_FLIGHT.set_function(lambda: requests.in_flight)
    IN_FLIGHT_LIMIT.set_function(lambda: requests.limit)
    try:
        yield
    finally:
        for gauge in (jobs, outcomes, IN_FLIGHT, IN_FLIGHT_LIMIT):
            gauge.set_function(int)


def limited_by(pipeline: Pipeline[Any, Any, Any], requests: AdaptiveLimit) -> str:
    """The bottleneck of a run, described for operators."""
    match pipeline.limiting:
        case "source":
            return "the listing"
        case "writer":
            return "the writer: lookups, ledger, index"
        case "workers" if pipeline.cores > BUSY_CORES:
            return f"the processor: parsing and fingerprinting keep {pipeline.cores:.1f} cores busy"
    return f"the object store: {requests.in_flight} requests in flight, {requests.limit} allowed by its latency"
