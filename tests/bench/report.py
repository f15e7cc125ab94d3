"""The bench's tables."""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis
from rich.console import Console
from rich.table import Table

from tests.support.resource_meter import Measured

BATCH_STAGES = ("look_up", "nominate", "commit", "index", "verify")
MICRO = 1e6

out = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a flow, with Redis's CPU seconds where it used Redis."""

    flow: Measured
    redis_cpu: float | None = None

    @property
    def rate(self) -> float:
        return self.flow.stories / self.flow.seconds

    def per_story(self, seconds: float | None) -> float:
        """Microseconds a story."""
        return (seconds or 0.0) * MICRO / self.flow.stories

    @property
    def cpu(self) -> float:
        """Microseconds a story, client and Redis."""
        return self.per_story(self.flow.cpu + (self.redis_cpu or 0.0))


Runs = Mapping[str, Sequence[Run]]


def run_beside(client: redis.Redis, flow: Callable[[], Measured]) -> Run:
    """A run of a flow that uses this Redis."""
    before = redis_cpu(client)
    measured = flow()
    return Run(measured, redis_cpu(client) - before)


def redis_cpu(client: redis.Redis) -> float:
    """The CPU seconds that a Redis has used so far."""
    said: Any = client.info("cpu")
    return float(said["used_cpu_sys"] + said["used_cpu_user"])


def median(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(map(value, runs))


def show_flows(runs: Runs, reference: str) -> None:
    """Medians, and how many times as good as the reference."""
    table = table_of(
        "flow",
        "stories",
        "pairs\nfound",
        "stories/s",
        "client CPU\nus a story",
        "Redis CPU\nus a story",
        "peak MB,\nall processes",
        "times as\nmany/s",
        "times less\nCPU",
    )
    theirs = runs[reference]
    for name, mine in runs.items():
        last = mine[-1]
        memory = median(mine, lambda run: run.flow.peak_mb)
        redis_cpu = median(mine, lambda run: run.per_story(run.redis_cpu))
        table.add_row(
            name,
            f"{last.flow.stories:,}",
            f"{last.flow.pairs:,}",
            f"{median(mine, lambda run: run.rate):,.0f}",
            f"{median(mine, lambda run: run.per_story(run.flow.cpu)):,.0f}",
            "-" if last.redis_cpu is None else f"{redis_cpu:,.0f}",
            f"{memory:,.0f}" if memory else "-",
            f"{median(mine, lambda run: run.rate) / median(theirs, lambda run: run.rate):.1f}",
            f"{median(theirs, lambda run: run.cpu) / median(mine, lambda run: run.cpu):.1f}",
        )
    out.print(table)


def show_batches(runs: Runs) -> None:
    """Wall time in the stages of a batch; those of a page are left out: many are read at once, by two processes."""
    table = table_of("stage of a batch in the flow, wall us a story", *runs)
    for stage in BATCH_STAGES:

        def cost(run: Run, stage: str = stage) -> float:
            return run.per_story(run.flow.stages.get(stage))

        table.add_row(stage, *(f"{median(mine, cost):,.0f}" for mine in runs.values()))
    out.print(table)


def show_stages(costs: Mapping[str, Mapping[str, float]]) -> None:
    """CPU time of the stages that can be taken by themselves, side by side."""
    table = table_of("stage by itself, one pass, CPU us a story", "neardup", "reference", "times less")
    for stage, mine in costs["neardup"].items():
        theirs = costs["reference"][stage]
        table.add_row(stage, f"{mine:,.0f}", f"{theirs:,.0f}", f"{theirs / mine:.1f}")
    out.print(table)


def table_of(first: str, *others: str) -> Table:
    """A table of a name and figures a row."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
