"""Measures what `neardup plan` interpolates: the bytes of each index at some sizes of one language.

    .venv/bin/python -m tests.bench.plan_sizes --stories 25000 --stories 200000 --stories 800000

The stories are drawn as uneven as prose.  The indexes in Redis grow in batches of 256 stories; that of SQLite is built
at once.  A line for each index and size is written to standard output, with how far the projection is off.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from neardup.index.redis import LAYOUTS
from neardup.insights import plan

from tests.support.index_sizes import redis_bytes, sqlite_bytes
from tests.support.languages import BENGALI


@click.command()
@click.option("--stories", type=click.IntRange(1000), multiple=True, default=[25_000, 200_000, 800_000])
def main(stories: tuple[int, ...]) -> None:
    """Print the bytes of each index at each size."""
    for count in stories:
        for layout in (None, *LAYOUTS):
            with TemporaryDirectory() as folder:
                measuring = (
                    sqlite_bytes({BENGALI: count}, Path(folder))
                    if layout is None
                    else redis_bytes(layout, {BENGALI: count}, Path(folder))
                )
                size = asyncio.run(measuring)
            index = layout or "sqlite"
            projected = sum(plan.project_bytes(index, {BENGALI: count}).values())
            click.echo(
                f"{index} {count:,}: {size:,} bytes, {size / count:.1f} a story, projected {projected / size - 1:+.1%}"
            )


if __name__ == "__main__":
    main()
