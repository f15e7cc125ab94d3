"""The throughput of a run: the queues before its stages, and the stage that limits it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neardup.pages.adaptive_limit import AdaptiveLimit
from neardup.pages.reader_pool import PROCESSES
from neardup.pipeline.stages import Pipeline
from neardup.telemetry.metrics import IN_FLIGHT, IN_FLIGHT_LIMIT, QUEUE_DEPTH

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
