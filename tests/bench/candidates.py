"""`make bench-candidates`: the candidate stage by itself, on many stories of one language, in both indexes.

The index is filled with synthetic fingerprints, the last of them in batches as a run inserts them.  Then
probes are looked up, batch by batch: half of them strangers to all stories, half edited copies.  Figures
are printed, never asserted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import redis
import uvloop

from daemon.config import Detection
from daemon.core.minhash import agreeing
from daemon.core.verify import hamming
from daemon.index import Found, Index
from daemon.index.redis import open_redis
from daemon.index.sqlite import SqliteIndex
from daemon.records import Change
from tests.bench import report, synthetic
from tests.bench.corpus import check
from tests.bench.process import machine
from tests.bench.synthetic import COPIES, FIRST_ID, LANGUAGE, Probes, Shares, Stories, make_probes
from tests.servers import redis_server

PROBES = 20_000
BATCH = 256  # as a run's
INSERTS = 20 * BATCH  # the last stories, inserted in such batches
FILL_BATCH = 10_000
SEED = 1
INTSETS = ("--set-max-intset-entries", "1000000")  # as in deploy/redis.conf
DETECTION = Detection()
MICRO = 1e6


@dataclass(slots=True)
class Cost:
    """Seconds of the clock, of this process's CPU and of the server's."""

    wall: float = 0.0
    client: float = 0.0
    server: float = 0.0


@dataclass(slots=True)
class Figures:
    """What one index showed.  `met` and `kept` are candidates by lookup, before and after the screen."""

    fill: Cost = field(default_factory=Cost)
    insert: Cost = field(default_factory=Cost)
    lookup: Cost = field(default_factory=Cost)
    met: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    found: dict[str, list[bool]] = field(default_factory=dict)
    capped: int = 0
    bytes: int = 0


Used = Callable[[], float]  # CPU seconds of the index's server so far


async def measure(index: Index, stories: Stories, probes: Probes, used: Used) -> Figures:
    """Insert all the stories, then look all the probes up."""
    figures = Figures()
    await index.clear("bench", "bench")
    first = len(stories) - INSERTS
    await _insert(index, stories.changes(0, first, FILL_BATCH), figures.fill, used)
    await _insert(index, stories.changes(first, len(stories), BATCH), figures.insert, used)
    for start in range(0, PROBES, BATCH):
        batch = probes.stories.banded(start, start + BATCH)
        async with _clock(figures.lookup, used):
            _, found = await index.lookup(batch)
        for place, one in enumerate(found, start):
            _count(figures, stories, probes, place, one)
    return figures


async def _insert(index: Index, batches: Iterable[Sequence[Change]], cost: Cost, used: Used) -> None:
    for changes in batches:
        async with _clock(cost, used):
            await index.apply(changes, changes[-1].seq)


@asynccontextmanager
async def _clock(cost: Cost, used: Used) -> AsyncIterator[None]:
    served, began, spent = used(), time.perf_counter(), time.process_time()
    yield
    cost.wall += time.perf_counter() - began
    cost.client += time.process_time() - spent
    cost.server += used() - served


def _count(figures: Figures, stories: Stories, probes: Probes, place: int, found: Found) -> None:
    """Screen what one lookup met, as a run does: within the distance, or enough rows agree."""
    near = np.fromiter(found.ids, np.int64, len(found.ids)) - FIRST_ID
    sketched = found.numbers.astype(np.int64) - 1
    bits = hamming(_halves(stories.simhashes[near]), _halves(probes.stories.simhashes[place]))
    rows = agreeing(stories.signatures[sketched], probes.stories.signatures[place])
    kept = np.union1d(near[bits <= DETECTION.hamming], sketched[rows >= DETECTION.agreeing_rows])
    figures.met.append(len(np.union1d(near, sketched)))
    figures.kept.append(len(kept))
    figures.capped += bool(found.capped)
    figures.found.setdefault(probes.kinds[place], []).append(int(probes.originals[place]) in kept)


def _halves(simhashes: synthetic.HashBytes) -> Any:
    return np.ascontiguousarray(simhashes).view(np.uint64)


async def in_sqlite(folder: Path, stories: Stories, probes: Probes) -> Figures:
    path = folder / "index.db"
    index = SqliteIndex(path, DETECTION.bandings)
    figures = await measure(index, stories, probes, lambda: 0.0)
    await index.close()
    figures.bytes = path.stat().st_size
    return figures


async def in_redis(folder: Path, stories: Stories, probes: Probes) -> Figures:
    with redis_server(folder, *INTSETS) as url, redis.Redis.from_url(url) as client:

        def info(section: str) -> dict[str, Any]:
            said: Any = client.info(section)
            return dict(said)

        def used() -> float:
            cpu = info("cpu")
            return float(cpu["used_cpu_sys"] + cpu["used_cpu_user"])

        empty = info("memory")["used_memory"]
        index = await open_redis(url, DETECTION.bandings)
        figures = await measure(index, stories, probes, used)
        figures.bytes = info("memory")["used_memory"] - empty
        await index.close()
    return figures


def show(columns: Mapping[str, Figures], stories: int) -> None:
    """A column an index and kind of stories, a row a figure."""
    rows: dict[str, Callable[[Figures], str]] = {
        f"filled by {FILL_BATCH:,}, stories/s": lambda f: f"{(stories - INSERTS) / f.fill.wall:,.0f}",
        f"then inserted by {BATCH}, stories/s": lambda f: f"{INSERTS / f.insert.wall:,.0f}",
        "insert, client CPU us": lambda f: f"{f.insert.client * MICRO / INSERTS:,.0f}",
        "insert, server CPU us": lambda f: f"{f.insert.server * MICRO / INSERTS:,.0f}",
        "lookups/s": lambda f: f"{PROBES / f.lookup.wall:,.0f}",
        "lookup, client CPU us": lambda f: f"{f.lookup.client * MICRO / PROBES:,.0f}",
        "lookup, server CPU us": lambda f: f"{f.lookup.server * MICRO / PROBES:,.0f}",
        "candidates, mean p50 p99": lambda f: _spread(f.met),
        "after the screen, mean p50 p99": lambda f: _spread(f.kept),
        **{f"found, {kind}": partial(_recall, kind) for kind in COPIES},
        "lookups that met a capped bucket": lambda f: f"{f.capped / PROBES:.4f}",
        "bytes a story": lambda f: f"{f.bytes / stories:,.0f}",
    }
    table = report.table_of("", *columns)
    for name, figure in rows.items():
        table.add_row(name, *map(figure, columns.values()))
    report.out.print(table)


def _recall(kind: str, figures: Figures) -> str:
    return f"{np.mean(figures.found[kind]):.4f}"


def _spread(counts: Sequence[int]) -> str:
    return f"{np.mean(counts):,.1f} {np.percentile(counts, 50):,.0f} {np.percentile(counts, 99):,.0f}"


async def run(stories: int, kinds: Mapping[str, Shares], folder: Path) -> dict[str, Figures]:
    columns = {}
    for kind, shares in kinds.items():
        rng = np.random.default_rng(SEED)
        made = synthetic.draw(rng, shares, stories)
        probes = make_probes(rng, shares, made, PROBES)
        for name, flow in (("SQLite", in_sqlite), ("Redis", in_redis)):
            click.echo(f"{name}, {kind}", err=True)
            with TemporaryDirectory(dir=folder) as own:
                columns[f"{name}\n{kind}"] = await flow(Path(own), made, probes)
    return columns


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=2 * INSERTS))
@click.argument("corpus", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(stories: int, corpus: Path | None) -> None:
    """Measure both indexes on synthetic stories: even signatures, and as uneven as those of CORPUS."""
    if corpus is None:
        uneven = synthetic.zipf_shares(np.random.default_rng(SEED))
        told = f"a row's values by Zipf's law, exponent {synthetic.ZIPF_EXPONENT}"
    else:
        check(corpus)
        uneven, language, measured = synthetic.measured_shares(corpus)
        told = f"a row's values as often as in {measured:,} {language} stories of {corpus}"
    kinds = {"even": synthetic.uniform_shares(), "uneven": uneven}
    with (
        TemporaryDirectory(prefix="neardup-bench-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        columns = runner.run(run(stories, kinds, Path(folder)))
    click.echo(f"{machine()}; Redis and the client share the cores; one run each, batches of {BATCH}")
    click.echo(
        f"{stories:,} {LANGUAGE} stories; uneven: {told}: a story's bucket of signatures holds "
        f"{_bucket(uneven, stories):,.0f} on average, {_bucket(synthetic.uniform_shares(), stories):,.0f} if even"
    )
    click.echo(f"{PROBES:,} probes: half strangers, half copies, a third of each kind\n")
    show(columns, stories)


def _bucket(shares: Shares, stories: int) -> float:
    """Expected members of the buckets that a story stands in."""
    alike = np.square(shares).sum(axis=1).reshape(-1, 2).prod(axis=1)
    return float(stories * alike.mean())


if __name__ == "__main__":
    main()
