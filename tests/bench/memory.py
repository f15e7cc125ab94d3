"""`make bench-memory`: the memory of all processes of `backfill --fresh`, its sweep included, over its stories.

The pages come from tests.bench.generated_store over S3, and the index is in Redis; neither counts.  The memory is the
sum of the proportional set sizes of the command and its descendants: shared pages count once.  Pages of files, such as
those of the passage index, are counted separately, because the system takes them back when it needs room.
"""

import csv
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TextIO

import click
from neardup.errors import NeardupError
from neardup.ledger import read
from neardup.ledger.languages import count_by_language

from tests.bench import generated_store, report
from tests.bench.scale import memory_settings
from tests.bench.subject import served_config
from tests.support.command import Neardup
from tests.support.resource_meter import descendants, environment, machine, memory_mb
from tests.support.s3_server import served_by
from tests.support.servers import redis_server

SHARES = (0.1, 0.25, 0.5, 0.75, 1)  # of the stories, at which the table has a row


class Sample(NamedTuple):
    """The memory at a time, in MiB; the time in seconds since the start."""

    seconds: float
    stories: int
    processes: int
    total: float
    anonymous: float


def sample(process: subprocess.Popen[bytes], ledger: Path, every: float) -> Iterator[Sample]:
    """Sample the memory until the process ends.  Raises CalledProcessError if it fails."""
    began = time.perf_counter()
    while process.poll() is None:
        pids = [str(process.pid), *descendants(process.pid)]
        sizes = [memory_mb(pid) for pid in pids]
        total, anonymous = (sum(column) for column in zip(*sizes, strict=True))
        yield Sample(time.perf_counter() - began, count_stories(ledger), len(pids), total, anonymous)
        with suppress(subprocess.TimeoutExpired):
            process.wait(every)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)


def count_stories(ledger: Path) -> int:
    """The stories of a ledger, 0 while there is none."""
    try:
        with closing(read(ledger)) as db:
            return sum(count_by_language(db).values())
    except NeardupError:
        return 0


def show(samples: list[Sample], stories: int) -> None:
    """Print the memory when each of SHARES of the stories is in, and the peaks before and after the last is."""
    table = report.table_of("moment", "stories", "seconds", "processes", "MiB, all", "MiB, of no file")
    reading = [row for row in samples if row.stories < stories]
    after = samples[len(reading) :]
    rows = {f"{share:.0%}": next((row for row in samples if row.stories >= share * stories), None) for share in SHARES}
    rows["peak until then"] = max(reading, key=lambda row: row.total, default=None)
    rows["peak after, of index and sweep"] = max(after, key=lambda row: row.total, default=None)
    for moment, row in rows.items():
        if row is not None:
            figures = (row.total, row.anonymous)
            table.add_row(
                moment, f"{row.stories:,}", f"{row.seconds:,.0f}", str(row.processes), *(f"{mb:,.0f}" for mb in figures)
            )
    report.out.print(table)


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=1))
@click.option("--every", default=10.0, show_default=True, help="Seconds between two samples.")
@click.option("--csv", "into", type=click.File("w", lazy=False), help="Write all samples to this file, as they come.")
def main(stories: int, every: float, into: TextIO | None) -> None:
    """Backfill so many short generated pages with --fresh, and print the memory that it takes."""
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        generated_store.write_manifest(folder / "manifest.csv", stories)
        neardup = Neardup(folder, environment())
        with (
            served_by(generated_store.__name__, stories) as endpoint,
            redis_server(folder, *memory_settings()) as index,
        ):
            neardup.configure(served_config(folder, endpoint, index))
            command = neardup.command("backfill", "--fresh", "--json")
            with subprocess.Popen(command, cwd=folder, env=neardup.env) as process:
                samples = list[Sample]()
                out = csv.writer(into) if into else None
                for row in sample(process, neardup.ledger, every):
                    samples.append(row)
                    if out and into:
                        out.writerow(row)
                        into.flush()
    click.echo(f"{machine()}; store, Redis and the backfill share the cores; a sample every {every:g} seconds\n")
    show(samples, stories)


if __name__ == "__main__":
    main()
