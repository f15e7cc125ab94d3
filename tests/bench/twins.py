"""The main job beside other programs of the same design: same pages, same nginx, a redis-server of the same kind.

`python -m tests.bench.twins --go PATH --naive PATH` runs neardup and each program that is given, in
turn, over the same generated pages, and prints medians: backfills, or with `--held N` daily runs while
so many stories are there already, in the bands that all of them read.  The programs take `-endpoint
-redis -n -mode -lang -id-base -obj-base -obj-count -spread` and print `stories_per_s=
cpu_us_per_story= peak_rss_mib=`; they make SimHashes only, and keep no ledger.  Server, Redis and the
flow share the machine.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis
from neardup.index.redis import Layout
from neardup.records import Language

from tests.bench import report, subject
from tests.bench.held import Held
from tests.bench.nginx import nginx
from tests.bench.pages import FIRST_ID, LANGUAGE, write_pages
from tests.bench.report import Run, run_beside
from tests.bench.scale_stages import LAYOUTS
from tests.support.module_process import machine, run_module
from tests.support.resource_meter import Measured
from tests.support.servers import free_port, redis_server
from tests.support.synthetic_stories import PLATFORM

ROUNDS = 3
NAIVE_SHARE = 5  # it is so slow that it is given a fifth of the stories

Flow = Callable[[], Run]


class Bed:
    """The pages, the stories that are there already, and what a flow is measured with."""

    def __init__(self, folder: Path, endpoint: str, stories: int, held: Held) -> None:
        self.folder, self.endpoint, self.stories, self.held = folder, endpoint, stories, held

    def neardup(self, command: str, layout: Layout) -> Run:
        with self._redis(layout) as (host, client), TemporaryDirectory(dir=self.folder) as name:
            self.held.copy_ledger(Path(name) / "neardup.db")
            config = Path(name) / "config.toml"
            text = subject.served_config(self.folder / "pages", self.endpoint, f"redis://{host}")
            config.write_text(text.replace("[ledger]", f'layout = "{layout}"\n[ledger]'), encoding="utf-8")
            return run_beside(client, lambda: Measured(**run_module(subject.__name__, config, command)))

    def twin(self, command: list[str], stories: int, mode: str, **env: str) -> Run:
        with self._redis("documented") as (host, client):
            options = {"endpoint": self.endpoint, "redis": host, "n": stories, "id-base": FIRST_ID}
            options |= {"mode": mode, "obj-base": FIRST_ID, "obj-count": self.stories}
            arguments = [word for name, value in options.items() for word in (f"-{name}", str(value))]
            return run_beside(client, lambda: _said([*command, *arguments], stories, env))

    @contextmanager
    def _redis(self, layout: Layout) -> Iterator[tuple[str, redis.Redis]]:
        port = free_port()
        with (
            redis_server(self.folder, "--port", str(port), *self.held.settings(layout)),
            redis.Redis(port=port) as client,
        ):
            yield f"127.0.0.1:{port}", client


def _said(command: list[str], stories: int, env: dict[str, str]) -> Measured:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | env, check=True)
    said = dict(re.findall(r"(\w+)=(\S+)", done.stdout))
    cpu = float(said["cpu_us_per_story"]) * stories / report.MICRO
    return Measured(stories, 0, float(said["wall_s"]), cpu)  # its peak of memory may be that of this process


def backfills(bed: Bed, go: Path | None, naive: Path | None) -> Iterator[tuple[str, Flow]]:
    yield "neardup, --fresh, compact", lambda: bed.neardup("fresh", "compact")
    yield "neardup, compact", lambda: bed.neardup("backfill", "compact")
    yield "neardup, documented", lambda: bed.neardup("backfill", "documented")
    if go:
        yield "Go, plain", lambda: bed.twin([str(go), "-style", "plain"], bed.stories, "backfill", GOGC="100")
        yield "Go, tuned", lambda: bed.twin([str(go)], bed.stories, "backfill")
    if naive:
        script = [sys.executable, str(naive)]
        yield "naive Python", lambda: bed.twin(script, bed.stories // NAIVE_SHARE, "backfill")


def dailies(bed: Bed, go: Path | None, naive: Path | None) -> Iterator[tuple[str, Flow]]:
    """The generated pages' SimHashes lie close together; those of the programs are told to spread theirs."""
    yield "neardup, compact", lambda: bed.neardup("daily", "compact")
    yield "neardup, documented", lambda: bed.neardup("daily", "documented")
    if go:
        yield "Go, tuned", lambda: bed.twin([str(go), "-spread"], bed.stories, "daily")
    if naive:
        script = [sys.executable, str(naive), "-spread"]
        yield "naive Python", lambda: bed.twin(script, bed.stories // NAIVE_SHARE, "daily")


@click.command()
@click.option("--stories", default=10_000, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--held", "there", default=0, show_default=True, type=click.IntRange(min=0), help="Stories already there."
)
@click.option("--platform", is_flag=True, help="These are of all languages, instead of one.")
@click.option(
    "--kind", type=click.Choice(["uniform", "prose"]), default="uniform", show_default=True, help="Their skew."
)
@click.option("--go", type=click.Path(exists=True, path_type=Path), help="The Go program.")
@click.option("--naive", type=click.Path(exists=True, path_type=Path), help="The plain Python script.")
@click.option("--only", default="", help="Only the flows whose name contains this.")
def main(
    *, stories: int, there: int, platform: bool, kind: str, go: Path | None, naive: Path | None, only: str
) -> None:
    """Measure neardup, and the programs given, over the same pages: backfills, or daily runs beside stories held."""
    with TemporaryDirectory(prefix="neardup-bench-") as work:
        folder = Path(work)
        folder.chmod(0o755)
        write_pages(folder / "pages", stories, plant=False)
        held = Held(folder / "held")
        held.folder.mkdir()
        if there:
            layouts = [layout for layout in LAYOUTS if only in f"neardup, {layout}"] if only else LAYOUTS
            held.fill(kind, there, PLATFORM if platform else {Language(LANGUAGE): 1}, layouts)
        with nginx(folder / "pages", "stories", folder / "nginx") as (endpoint, _):
            bed = Bed(folder, endpoint, stories, held)
            given = dailies(bed, go, naive) if there else backfills(bed, go, naive)
            flows = {name: flow for name, flow in given if only in name}
            runs: dict[str, list[Run]] = {name: [] for name in flows}
            for turn in range(ROUNDS):
                for name, flow in flows.items():
                    click.echo(f"run {turn + 1} of {ROUNDS}: {name}", err=True)
                    runs[name].append(flow())
    click.echo(f"{machine()}; nginx, Redis and flow share the cores; {LANGUAGE}; medians of {ROUNDS} runs in turn")
    click.echo(f"{stories:,} pages, {there:,} {kind} stories there already\n")
    report.show_flows(runs, list(runs)[-1])


if __name__ == "__main__":
    main()
