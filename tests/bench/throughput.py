"""`make bench`: microseconds of CPU a story and stories a second, beside a plain reference flow.

Three flows over the same generated pages, in turn, each in a process of its own: neardup over files
and SQLite, neardup over S3 and Redis, and tests.bench.reference over S3 and Redis.  Object server,
Redis and the flow share the machine.  Timings are printed, never asserted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis

from tests.bench import reference, report, stages, subject
from tests.bench.pages import write_pages
from tests.bench.report import Run, run_beside
from tests.support.module_process import machine, run_module
from tests.support.resource_meter import Measured
from tests.support.s3_server import object_server
from tests.support.servers import redis_server

ROUNDS = 3
REFERENCE_SHARE = 20  # the reference is so slow that it is given a twentieth of the stories
EMBEDDED, SERVED, REFERENCE = "neardup, files + SQLite", "neardup, S3 + Redis", "reference, S3 + Redis"


@dataclass(frozen=True, slots=True)
class Bed:
    """What the flows run on; the reference is given the first `few` stories."""

    folder: Path
    pages: Path
    endpoint: str
    few: int

    def embedded(self) -> Run:
        with self._config(subject.embedded_config(self.pages)) as config:
            return Run(Measured(**run_module(subject.__name__, config)))

    def served(self) -> Run:
        with self._redis() as (url, client), self._config(self._served(url)) as config:
            return run_beside(client, lambda: Measured(**run_module(subject.__name__, config)))

    def reference(self) -> Run:
        with self._redis() as (url, client):
            given = (self.endpoint, url, self.pages / "manifest.csv", self.few)
            return run_beside(client, lambda: Measured(**run_module(reference.__name__, *given)))

    def stages(self) -> dict[str, dict[str, float]]:
        with self._config(self._served("sqlite:")) as config:
            return dict(run_module(stages.__name__, config, self.endpoint, self.few))

    @contextmanager
    def _redis(self) -> Iterator[tuple[str, redis.Redis]]:
        with redis_server(self.folder) as url, redis.Redis.from_url(url) as client:
            yield url, client

    def _served(self, index: str) -> str:
        return subject.served_config(self.pages, self.endpoint, index)

    @contextmanager
    def _config(self, text: str) -> Iterator[Path]:
        """A configuration in a folder of its own, for a ledger that is not there yet."""
        with TemporaryDirectory(dir=self.folder) as name:
            path = Path(name) / "config.toml"
            path.write_text(text, encoding="utf-8")
            yield path


def measure(bed: Bed) -> dict[str, list[Run]]:
    """The runs of each flow, taken in turn."""
    flows = {EMBEDDED: bed.embedded, SERVED: bed.served, REFERENCE: bed.reference}
    runs: dict[str, list[Run]] = {name: [] for name in flows}
    for turn in range(ROUNDS):
        for name, flow in flows.items():
            click.echo(f"run {turn + 1} of {ROUNDS}: {name}", err=True)
            runs[name].append(flow())
    return runs


@click.command()
@click.option("--stories", default=20_000, show_default=True, type=click.IntRange(min=1))
def main(stories: int) -> None:
    """Measure neardup and a plain reference flow on the same generated pages."""
    few = max(stories // REFERENCE_SHARE, 1)
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        copies = write_pages(folder / "pages", stories)
        with object_server(folder / "pages", reference.BUCKET) as endpoint:
            bed = Bed(folder, folder / "pages", endpoint, few)
            runs = measure(bed)
            costs = bed.stages()
    click.echo(
        f"{machine()}; object server, Redis and flow share the cores; medians of {ROUNDS} runs in turn.\n"
        f"Copies planted: {sum(copies)} among {stories:,} stories; the reference is given the first {few:,}, "
        f"with {sum(copies[:few])}.\nThe pairs it finds beyond those are false: its words are `\\w+`, "
        "which tears Indic words apart.\nThe start of neardup's reading processes is in its figures.\n"
    )
    report.show_flows(runs, REFERENCE)
    click.echo()
    report.show_batches({name: runs[name] for name in (EMBEDDED, SERVED)})
    click.echo()
    report.show_stages(costs)


if __name__ == "__main__":
    main()
