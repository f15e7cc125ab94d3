"""Measures what `neardup plan` interpolates: the bytes of each index at some sizes of one language.

    .venv/bin/python -m tests.bench.plan_sizes --stories 25000 --stories 200000 --stories 800000

The stories are drawn as uneven as prose.  The indexes in Redis grow in batches of 256 stories; that of SQLite is built
at once.  A line for each index and size is written to standard output, with how far the
projection is off.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import redis
from neardup.config import Detection
from neardup.index.redis import LAYOUTS, Layout, open_redis
from neardup.index.redis.documented import INTSET_ENTRIES
from neardup.index.sqlite import SqliteIndex
from neardup.insights import plan
from neardup.languages import LANGUAGES
from neardup.records import BandedFingerprint, Change, Language

from tests.support.languages import BENGALI, CODES
from tests.support.servers import redis_server
from tests.support.synthetic_pages import pages_of

BATCH = 256


async def redis_bytes(layout: Layout, sizes: dict[Language, int], folder: Path, program: str = "redis") -> int:
    """The bytes that an index in a layout adds to a server's memory, once these stories were inserted in batches."""
    with (
        redis_server(folder, "--set-max-intset-entries", str(INTSET_ENTRIES), program=program) as url,
        redis.Redis.from_url(url) as client,
    ):
        index = await open_redis(url, Detection().bandings(LANGUAGES), CODES, layout)
        before = int(client.info("memory")["used_memory"])
        await index.clear("ledger", "version", sizes)
        async for page in pages_of(sizes):
            for start in range(0, len(page), BATCH):
                changes = [
                    Change(
                        number,
                        int(page.ids[n]),
                        None,
                        BandedFingerprint(
                            LANGUAGES[page.languages[n]], page.simhashes[n].tobytes(), page.signatures[n].tobytes()
                        ),
                        number,
                    )
                    for n in range(start, min(start + BATCH, len(page)))
                    for number in [int(page.numbers[n])]
                ]
                await index.apply(changes, changes[-1].seq)
        await index.close()
        return int(client.info("memory")["used_memory"]) - before


async def sqlite_bytes(sizes: dict[Language, int], folder: Path) -> int:
    """The bytes of the file of an index that is built from these stories."""
    path = folder / "index.db"
    index = SqliteIndex(path, Detection().bandings(LANGUAGES))
    await index.clear("ledger", "version", sizes)
    async for _ in index.build(pages_of(sizes), folder):
        pass
    await index.close()
    return path.stat().st_size


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
            projected = sum(plan.index_bytes(index, {BENGALI: count}).values())
            click.echo(
                f"{index} {count:,}: {size:,} bytes, {size / count:.1f} a story, projected {projected / size - 1:+.1%}"
            )


if __name__ == "__main__":
    main()
