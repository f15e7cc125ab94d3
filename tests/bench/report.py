"""The tables that the benchmarks print."""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import redis
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from tests.support.resource_meter import Measured

BATCH_STAGES = ("look_up", "look_up_passages", "nominate", "commit", "index", "verify")
MICRO = 1e6

out = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


class Run(Struct, frozen=True):
    """One run of a flow, with Redis's CPU seconds where it used Redis."""

    flow: Measured
    redis_cpu: float | None = None

    @property
    def rate(self) -> float:
        return self.flow.stories / self.flow.seconds

    def per_story(self, seconds: float | None) -> float:
        """Microseconds per story."""
        return (seconds or 0.0) * MICRO / self.flow.stories

    @property
    def readers_cpu(self) -> float | None:
        """CPU seconds of the children; None for a program that has none."""
        return self.flow.children_cpu or None

    @property
    def cpu(self) -> float:
        """Microseconds of CPU per story, of the client and Redis."""
        return self.per_story(self.flow.cpu + (self.redis_cpu or 0.0))


Runs = Mapping[str, Sequence[Run]]


def run_with_redis(client: redis.Redis, flow: Callable[[], Measured]) -> Run:
    """Run a flow that uses this Redis, and measure the CPU time of both."""
    before = redis_cpu(client)
    measured = flow()
    return Run(measured, redis_cpu(client) - before)


def redis_cpu(client: redis.Redis) -> float:
    """The CPU seconds that a Redis has used so far."""
    info: Any = client.info("cpu")
    return float(info["used_cpu_sys"] + info["used_cpu_user"])


def median(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(map(value, runs))


def show_flows(runs: Runs, reference: str) -> None:
    """Print medians, and ratios to the reference."""
    table = table_of(
        "flow",
        "stories",
        "pairs\nfound",
        "stories/s",
        "client CPU,\nus/story",
        "Redis CPU,\nus/story",
        "peak MiB, all\nprocesses",
        "speedup,\ntimes",
        "less CPU,\ntimes",
    )
    baseline = runs[reference]
    for name, flow_runs in runs.items():
        last = flow_runs[-1]
        memory = median(flow_runs, lambda run: run.flow.peak_mb)
        redis_cpu = median(flow_runs, lambda run: run.per_story(run.redis_cpu))
        table.add_row(
            name,
            f"{last.flow.stories:,}",
            f"{last.flow.pairs:,}",
            f"{median(flow_runs, lambda run: run.rate):,.0f}",
            f"{median(flow_runs, lambda run: run.per_story(run.flow.cpu)):,.0f}",
            "-" if last.redis_cpu is None else f"{redis_cpu:,.0f}",
            f"{memory:,.0f}" if memory else "-",
            f"{median(flow_runs, lambda run: run.rate) / median(baseline, lambda run: run.rate):.1f}",
            f"{median(baseline, lambda run: run.cpu) / median(flow_runs, lambda run: run.cpu):.1f}",
        )
    out.print(table)


ROADS = "only the story,\nrendered in C, in Python"


def show_beds(runs: Runs, bare: str) -> None:
    """Print medians, and their ratios to those of the bare bed."""
    figures: dict[str, Callable[[Run], float | None]] = {
        "stories/s": lambda run: run.rate,
        "CPU,\nus/story": lambda run: run.per_story(run.flow.cpu),
        "main\nprocess": lambda run: run.readers_cpu and run.per_story(run.flow.cpu - run.readers_cpu),
        "reader\nprocesses": lambda run: run.readers_cpu and run.per_story(run.readers_cpu),
        "Redis": lambda run: run.redis_cpu and run.per_story(run.redis_cpu),
        "peak MiB, all\nprocesses": lambda run: run.flow.peak_mb or None,
    }
    medians = {name: [_median_of(flow_runs, value) for value in figures.values()] for name, flow_runs in runs.items()}
    absolute, relative = table_of("pages", *figures, ROADS), table_of("times the bare bed", *figures)
    for name, flow_runs in runs.items():
        roads = flow_runs[0].flow.roads
        shares = " ".join(f"{share:.0%}" for share in roads) if roads else "-"
        absolute.add_row(name, *(_or_dash(value, ",.0f") for value in medians[name]), shares)
        pairs = zip(medians[name], medians[bare], strict=True)
        relative.add_row(name, *(_or_dash(value and base and value / base, ".2f") for value, base in pairs))
    out.print(absolute)
    out.print()
    out.print(relative)


def _median_of(runs: Sequence[Run], value: Callable[[Run], float | None]) -> float | None:
    """The median of a figure that some flows lack."""
    values = [figure for run in runs if (figure := value(run)) is not None]
    return statistics.median(values) if values else None


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def show_batches(runs: Runs) -> None:
    """Print the wall time of the stages of a batch.

    The stages of a page are left out: their wall times overlap, because processes read many pages at once.
    """
    table = table_of("batch stage, wall us/story", *runs)
    for stage in BATCH_STAGES:

        def cost(run: Run, stage: str = stage) -> float:
            return run.per_story(run.flow.stages.get(stage))

        table.add_row(stage, *(f"{median(flow_runs, cost):,.0f}" for flow_runs in runs.values()))
    out.print(table)


def show_stages(costs: Mapping[str, Mapping[str, float]]) -> None:
    """Print the CPU time of the stages that can be measured in isolation, beside the reference's."""
    table = table_of("stage in isolation, one pass, CPU us/story", "neardup", "reference", "ratio")
    for stage, cost in costs["neardup"].items():
        reference_cost = costs["reference"][stage]
        table.add_row(stage, f"{cost:,.0f}", f"{reference_cost:,.0f}", f"{reference_cost / cost:.1f}")
    out.print(table)


def table_of(label: str, *figures: str) -> Table:
    """An empty table with these headings, whose rows have a label and figures."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(label)
    for name in figures:
        table.add_column(name, justify="right")
    return table
