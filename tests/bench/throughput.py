"""`make bench`: the starts of commands, and CPU time per story and stories per second beside a plain reference flow.

Three flows process the same generated pages in turn, each in a process of its own: neardup with files and SQLite,
neardup with S3 and Redis, and tests.bench.reference with S3 and Redis.  The object server, Redis and the flow share the
machine.  Timings are printed, never asserted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis

from tests.bench import reference, report, stages, starts, subject
from tests.bench.pages import write_pages
from tests.bench.report import Run, run_with_redis
from tests.support.module_process import machine, run_module
from tests.support.resource_meter import Measured
from tests.support.s3_server import object_server
from tests.support.servers import redis_server

ROUNDS = 3
REFERENCE_DIVISOR = 20  # the reference is slow, so it processes a twentieth of the stories
EMBEDDED, SERVED, REFERENCE = "neardup, files + SQLite", "neardup, S3 + Redis", "reference, S3 + Redis"


@dataclass(frozen=True, slots=True)
class Flows:
    """The flows and their pages; the reference processes the first `reference_count` stories."""

    folder: Path
    pages: Path
    endpoint: str
    reference_count: int

    def embedded(self) -> Run:
        with self._config(subject.embedded_config(self.pages)) as config:
            return Run(Measured(**run_module(subject.__name__, config)))

    def served(self) -> Run:
        with self._redis() as (url, client), self._config(self._served(url)) as config:
            return run_with_redis(client, lambda: Measured(**run_module(subject.__name__, config)))

    def reference(self) -> Run:
        with self._redis() as (url, client):
            arguments = (self.endpoint, url, self.pages / "manifest.csv", self.reference_count)
            return run_with_redis(client, lambda: Measured(**run_module(reference.__name__, *arguments)))

    def stages(self) -> dict[str, dict[str, float]]:
        with self._config(self._served("sqlite:")) as config:
            return dict(run_module(stages.__name__, config, self.endpoint, self.reference_count))

    @contextmanager
    def _redis(self) -> Iterator[tuple[str, redis.Redis]]:
        with redis_server(self.folder) as url, redis.Redis.from_url(url) as client:
            yield url, client

    def _served(self, index: str) -> str:
        return subject.served_config(self.pages, self.endpoint, index)

    @contextmanager
    def _config(self, text: str) -> Iterator[Path]:
        """A configuration file in a new folder, so that each run starts with an empty ledger."""
        with TemporaryDirectory(dir=self.folder) as name:
            path = Path(name) / "config.toml"
            path.write_text(text, encoding="utf-8")
            yield path


def measure(flows: Flows) -> dict[str, list[Run]]:
    """Run each flow ROUNDS times, taking turns."""
    by_name = {EMBEDDED: flows.embedded, SERVED: flows.served, REFERENCE: flows.reference}
    runs: dict[str, list[Run]] = {name: [] for name in by_name}
    for turn in range(ROUNDS):
        for name, flow in by_name.items():
            click.echo(f"round {turn + 1} of {ROUNDS}: {name}", err=True)
            runs[name].append(flow())
    return runs


@click.command()
@click.option("--stories", default=20_000, show_default=True, type=click.IntRange(min=1))
def main(stories: int) -> None:
    """Measure the starts of commands, and neardup and a plain reference flow on the same generated pages."""
    click.echo("starts of commands", err=True)
    of_commands = starts.measure_in_new_folder()
    reference_count = max(stories // REFERENCE_DIVISOR, 1)
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        copies = write_pages(folder / "pages", stories)
        with object_server(folder / "pages", reference.BUCKET) as endpoint:
            flows = Flows(folder, folder / "pages", endpoint, reference_count)
            runs = measure(flows)
            costs = flows.stages()
    click.echo(
        f"{machine()}; object server, Redis and flow share the cores; medians of {ROUNDS} rounds.\n"
        f"{stories:,} stories with {sum(copies)} planted copies; "
        f"the reference processes the first {reference_count:,}, with {sum(copies[:reference_count])} copies.\n"
        "Further pairs of the reference are false: its words are `\\w+`, which splits Indic words.\n"
        "neardup's figures include the start of its reader processes.\n"
    )
    starts.show_starts(of_commands)
    click.echo()
    report.show_flows(runs, REFERENCE)
    click.echo()
    report.show_batches({name: runs[name] for name in (EMBEDDED, SERVED)})
    click.echo()
    report.show_stages(costs)


if __name__ == "__main__":
    main()
