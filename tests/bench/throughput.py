"""`make bench`: the starts of commands, and stories per second and CPU time per story on BEDS of the same stories.

Neardup backfills each bed with `--fresh`, over S3 and Redis.  The bare bed is also processed by a Go program, if its
sources are given, by neardup with look-ups, from S3 and from files, and by tests.bench.reference.  The flows take
turns, each in a process of its own.  nginx, Redis and the flow share the machine.  Timings are printed, never asserted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis
from msgspec import Struct

from tests.bench import reference, report, stages, starts, subject
from tests.bench.other_programs import Program, go_option, go_programs, nginx, run_program
from tests.bench.pages import BARE, BEDS, Bed, Page, write_pages
from tests.bench.report import Run, run_with_redis
from tests.support.resource_meter import Measured, machine, run_module
from tests.support.servers import free_port, redis_server

ROUNDS = 3
REFERENCE_DIVISOR = 20  # the reference is slow, so it processes a twentieth of the stories
LOOK_UPS = "bare, with look-ups"
EMBEDDED, SERVED, REFERENCE = "neardup, files + SQLite", "neardup, S3 + Redis", "reference, S3 + Redis"


class Site(Struct, frozen=True):
    """The pages of one kind: their folder, and the endpoint of the store that serves it."""

    pages: Path
    endpoint: str


class Flows(Struct, frozen=True):
    """The flows and their pages; the reference processes the first `reference_count` of `stories`."""

    folder: Path
    sites: Mapping[Page, Site]
    stories: int
    reference_count: int

    def of_bed(self, bed: Bed) -> Run:
        """A first backfill of the bed's pages."""
        return self._served(bed, "fresh")

    def with_look_ups(self) -> Run:
        return self._served(BEDS[BARE], "backfill")

    def embedded(self) -> Run:
        with self._config(subject.embedded_config(self._bare.pages)) as config:
            return Run(Measured(**run_module(subject.__name__, config)))

    def reference(self) -> Run:
        with self._redis() as (url, client):
            arguments = (self._bare.endpoint, url, self._bare.pages / "manifest.csv", self.reference_count)
            return run_with_redis(client, lambda: Measured(**run_module(reference.__name__, *arguments)))

    def other(self, program: Program) -> Run:
        host = f"127.0.0.1:{(port := free_port())}"
        with self._redis("--port", str(port)) as (_, client):
            of_pages = partial(run_program, endpoint=self._bare.endpoint, redis=host, pages=self.stories)
            return run_with_redis(client, lambda: of_pages(program, self.stories, "backfill"))

    def stages(self) -> dict[str, dict[str, float]]:
        site = self._bare
        with self._config(subject.served_config(site.pages, site.endpoint, "sqlite:")) as config:
            return dict(run_module(stages.__name__, config, site.endpoint, self.reference_count))

    @property
    def _bare(self) -> Site:
        return self.sites[BEDS[BARE].page]

    def _served(self, bed: Bed, command: str) -> Run:
        site = self.sites[bed.page]
        with (
            self._redis() as (url, client),
            self._config(subject.served_config(site.pages, site.endpoint, url, bed.body)) as config,
        ):
            return run_with_redis(client, lambda: Measured(**run_module(subject.__name__, config, command)))

    @contextmanager
    def _redis(self, *options: str) -> Iterator[tuple[str, redis.Redis]]:
        with redis_server(self.folder, *options) as url, redis.Redis.from_url(url) as client:
            yield url, client

    @contextmanager
    def _config(self, text: str) -> Iterator[Path]:
        """A configuration file in a new folder, so that each run starts with an empty ledger."""
        with TemporaryDirectory(dir=self.folder) as name:
            path = Path(name) / "config.toml"
            path.write_text(text, encoding="utf-8")
            yield path


@contextmanager
def served_sites(folder: Path, stories: int) -> Iterator[tuple[dict[Page, Site], list[bool]]]:
    """Write the pages of each kind and serve them; yields them, and for each story whether it is a planted copy."""
    sites, copies = dict[Page, Site](), list[bool]()
    with ExitStack() as servers:
        for n, page in enumerate(dict.fromkeys(bed.page for bed in BEDS.values())):
            pages = folder / f"pages-{n}"
            copies = write_pages(pages, stories, page=page)
            endpoint, _ = servers.enter_context(nginx(pages, reference.BUCKET, folder / f"nginx-{n}"))
            sites[page] = Site(pages, endpoint)
        yield sites, copies


def measure(flows: Flows, programs: Mapping[str, Program]) -> dict[str, list[Run]]:
    """Run each flow ROUNDS times, taking turns."""
    by_name: dict[str, Callable[[], Run]] = {name: partial(flows.of_bed, bed) for name, bed in BEDS.items()}
    by_name |= {name: partial(flows.other, program) for name, program in programs.items()}
    by_name |= {LOOK_UPS: flows.with_look_ups, EMBEDDED: flows.embedded, REFERENCE: flows.reference}
    runs: dict[str, list[Run]] = {name: [] for name in by_name}
    for turn in range(ROUNDS):
        for name, flow in by_name.items():
            click.echo(f"round {turn + 1} of {ROUNDS}: {name}", err=True)
            runs[name].append(flow())
    return runs


@click.command()
@click.option("--stories", default=8_000, show_default=True, type=click.IntRange(min=1))
@go_option
def main(stories: int, go_sources: Path | None) -> None:
    """Measure the starts of commands, and neardup and other programs on the same generated stories."""
    click.echo("starts of commands", err=True)
    of_commands = starts.measure_in_new_folder()
    reference_count = max(stories // REFERENCE_DIVISOR, 1)
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx reads the pages as another user
        programs = go_programs(go_sources, folder)
        with served_sites(folder, stories) as (sites, copies):
            flows = Flows(folder, sites, stories, reference_count)
            runs = measure(flows, programs)
            costs = flows.stages()
    click.echo(
        f"{machine()}; nginx, Redis and flow share the cores; medians of {ROUNDS} rounds.\n"
        f"{stories:,} stories with {sum(copies)} planted copies; "
        f"the reference processes the first {reference_count:,}, with {sum(copies[:reference_count])} copies.\n"
        "Further pairs of the reference are false: its words are `\\w+`, which splits Indic words.\n"
        "neardup's figures include the start of its reader processes; the beds are backfilled with --fresh.\n"
    )
    starts.show_starts(of_commands)
    click.echo()
    report.show_beds({name: runs[name] for name in (*BEDS, LOOK_UPS, *programs)}, BARE)
    click.echo()
    of_flows = {EMBEDDED: runs[EMBEDDED], SERVED: runs[LOOK_UPS], REFERENCE: runs[REFERENCE]}
    report.show_flows(of_flows, REFERENCE)
    click.echo()
    report.show_batches({name: of_flows[name] for name in (EMBEDDED, SERVED)})
    click.echo()
    report.show_stages(costs)


if __name__ == "__main__":
    main()
