"""How a run flows: what waits before each stage, and which of them the others wait for."""

from typing import Any

from neardup.pages.adaptive_limit import Concurrency
from neardup.pages.reader_pool import PROCESSES
from neardup.pipeline.stages import Pipeline
from neardup.telemetry.metrics import IN_FLIGHT, IN_FLIGHT_LIMIT, QUEUE_DEPTH

BUSY_CORES = 0.7 * PROCESSES  # Redis and the system have the rest


def watch_flow(pipeline: Pipeline[Any, Any, Any], requests: Concurrency) -> None:
    """Let the gauges follow a run."""
    QUEUE_DEPTH.labels("jobs").set_function(pipeline.jobs.qsize)
    QUEUE_DEPTH.labels("outcomes").set_function(pipeline.outcomes.qsize)
    IN_FLIGHT.set_function(lambda: requests.in_flight)
    IN_FLIGHT_LIMIT.set_function(lambda: requests.limit)


def unwatch_flow() -> None:
    """The run is over, nothing waits; though the marker of the end stays in a queue."""
    for name in ("jobs", "outcomes"):
        QUEUE_DEPTH.labels(name).set_function(int)
    for gauge in (IN_FLIGHT, IN_FLIGHT_LIMIT):
        gauge.set_function(int)


def limited_by(pipeline: Pipeline[Any, Any, Any], requests: Concurrency) -> str:
    """What a run waits for, in an operator's words."""
    match pipeline.limiting:
        case "source":
            return "the listing"
        case "writer":
            return "the writer: lookups, ledger, index"
        case "workers" if pipeline.cores > BUSY_CORES:
            return f"the processor: parsing and fingerprinting keep {pipeline.cores:.1f} cores busy"
    return f"the object store: {requests.in_flight} requests in flight, {requests.limit} allowed by its latency"
