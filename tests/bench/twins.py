"""Compares neardup with other programs of the same design, on the same pages, nginx and redis-server settings.

`python -m tests.bench.twins --go FOLDER --naive SCRIPT` runs neardup and each given program in turn over the same
generated pages, and prints medians: of backfills, or with `--held N` of daily runs with N earlier stories in the index.
The server, Redis and the flow share the machine.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis
from msgspec.structs import replace
from neardup.index.redis import Layout
from neardup.records import Language

from tests.bench import report, subject
from tests.bench.other_programs import Program, go_option, go_programs, nginx, run_program
from tests.bench.pages import LANGUAGE, write_pages
from tests.bench.report import Run, run_with_redis
from tests.bench.scale import StartState
from tests.bench.scale_stages import LAYOUTS
from tests.support.resource_meter import Measured, machine, run_module
from tests.support.servers import free_port, redis_server
from tests.support.synthetic import PLATFORM

ROUNDS = 3
NAIVE_DIVISOR = 5  # the plain Python script is slow, so it processes a fifth of the stories

Flow = Callable[[], Run]


class Programs:
    """Runs neardup and the other programs on the pages in `folder`, from the same start state."""

    def __init__(self, folder: Path, endpoint: str, stories: int, start: StartState) -> None:
        self.folder, self.endpoint, self.stories, self.start = folder, endpoint, stories, start

    def neardup(self, command: str, layout: Layout) -> Run:
        with self._redis(layout) as (host, client), TemporaryDirectory(dir=self.folder) as name:
            self.start.copy_ledger(Path(name) / "neardup.db")
            config = Path(name) / "config.toml"
            text = subject.served_config(self.folder / "pages", self.endpoint, f"redis://{host}")
            config.write_text(text.replace("[ledger]", f'layout = "{layout}"\n[ledger]'), encoding="utf-8")
            return run_with_redis(client, lambda: Measured(**run_module(subject.__name__, config, command)))

    def other(self, program: Program, stories: int, mode: str) -> Run:
        with self._redis("documented") as (host, client):
            of_pages = partial(run_program, endpoint=self.endpoint, redis=host, pages=self.stories)
            return run_with_redis(client, lambda: of_pages(program, stories, mode))

    @contextmanager
    def _redis(self, layout: Layout) -> Iterator[tuple[str, redis.Redis]]:
        port = free_port()
        with (
            redis_server(self.folder, "--port", str(port), *self.start.settings(layout)),
            redis.Redis(port=port) as client,
        ):
            yield f"127.0.0.1:{port}", client


def backfills(programs: Programs, go: Mapping[str, Program], naive: Path | None) -> Iterator[tuple[str, Flow]]:
    yield "neardup, --fresh, compact", lambda: programs.neardup("fresh", "compact")
    yield "neardup, compact", lambda: programs.neardup("backfill", "compact")
    yield "neardup, documented", lambda: programs.neardup("backfill", "documented")
    for name, program in go.items():
        yield name, partial(programs.other, program, programs.stories, "backfill")
    if naive:
        script = Program([sys.executable, str(naive)])
        yield "naive Python", lambda: programs.other(script, programs.stories // NAIVE_DIVISOR, "backfill")


def daily_runs(programs: Programs, go: Mapping[str, Program], naive: Path | None) -> Iterator[tuple[str, Flow]]:
    """The generated pages' SimHashes are close together, so the other programs get an option that spreads theirs."""
    yield "neardup, compact", lambda: programs.neardup("daily", "compact")
    yield "neardup, documented", lambda: programs.neardup("daily", "documented")
    for name, program in go.items():
        spread = replace(program, command=[*program.command, "-spread"])
        yield name, partial(programs.other, spread, programs.stories, "daily")
    if naive:
        script = Program([sys.executable, str(naive), "-spread"])
        yield "naive Python", lambda: programs.other(script, programs.stories // NAIVE_DIVISOR, "daily")


@click.command()
@click.option("--stories", default=10_000, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--held",
    "earlier",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Earlier stories in ledger and index.  With any, daily runs are measured, else backfills.",
)
@click.option("--platform", is_flag=True, help="Draw the earlier stories from all languages.")
@click.option(
    "--kind",
    type=click.Choice(["uniform", "prose"]),
    default="uniform",
    show_default=True,
    help="Skew of the earlier stories.",
)
@go_option
@click.option("--naive", type=click.Path(exists=True, path_type=Path), help="The plain Python script.")
@click.option("--only", default="", help="Measure only the flows whose names contain this.")
def main(
    *, stories: int, earlier: int, platform: bool, kind: str, go_sources: Path | None, naive: Path | None, only: str
) -> None:
    """Measure backfills, or daily runs, of neardup and the given programs on the same pages."""
    with TemporaryDirectory(prefix="neardup-bench-") as work:
        folder = Path(work)
        folder.chmod(0o755)
        write_pages(folder / "pages", stories, plant=False)
        start = StartState(folder / "start")
        start.folder.mkdir()
        if earlier:
            layouts = [layout for layout in LAYOUTS if only in f"neardup, {layout}"] if only else LAYOUTS
            start.fill(kind, earlier, PLATFORM if platform else {Language(LANGUAGE): 1}, layouts)
        with nginx(folder / "pages", "stories", folder / "nginx") as (endpoint, _):
            programs = Programs(folder, endpoint, stories, start)
            all_flows = (daily_runs if earlier else backfills)(programs, go_programs(go_sources, folder), naive)
            flows = {name: flow for name, flow in all_flows if only in name}
            runs: dict[str, list[Run]] = {name: [] for name in flows}
            for turn in range(ROUNDS):
                for name, flow in flows.items():
                    click.echo(f"round {turn + 1} of {ROUNDS}: {name}", err=True)
                    runs[name].append(flow())
    click.echo(f"{machine()}; nginx, Redis and flow share the cores; {LANGUAGE}; medians of {ROUNDS} rounds")
    click.echo(f"{stories:,} pages, {earlier:,} earlier {kind} stories\n")
    report.show_flows(runs, list(runs)[-1])


if __name__ == "__main__":
    main()
