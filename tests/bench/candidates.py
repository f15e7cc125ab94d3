"""`make bench-candidates`: the candidate stage by itself, on many stories of one language, in each index.

The index is built from synthetic fingerprints, the last of them inserted in batches as a run inserts them.
Then probes are looked up, batch by batch: half of them strangers to all stories, half edited copies; by
their SimHashes alone, and by both fingerprints.  Beside it what is usual, all members of all bands and
their hashes: SUNION, then HMGET.  Figures are printed, never asserted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import redis
import uvloop
from neardup.config import Detection
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.candidates.select import Nominee, nominate
from neardup.index.protocol import Index, LookupResult
from neardup.index.redis import Layout, open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.languages import LANGUAGES
from neardup.records import Banded

from tests.bench import report, scale_bytes
from tests.bench.report import redis_cpu
from tests.bench.sunion import look_up
from tests.support import synthetic
from tests.support.languages import CODES, NAMES
from tests.support.module_process import machine
from tests.support.servers import redis_server
from tests.support.synthetic import COPIES, FIRST_ID, LANGUAGE, Probes, Source, Stories, make_probes

PROBES = 20_000
BATCH = 256  # as a run's
INSERTS = 20 * BATCH  # the last stories, inserted in such batches
PROBED = 2 * BATCH  # at a time: Redis reads for one half while the other's is counted
PAGE = 50_000
USUAL, USUAL_BATCH = 512, 32  # probes for SUNION and HMGET, which take long
SEED = 1
INTSETS = ("--set-max-intset-entries", "1000000")  # as in deploy/redis.conf
NOBODY = -1  # the id of a probe, which is no story's
DETECTION = Detection()
LIMITS = {LANGUAGE: DETECTION.of(LANGUAGE)}


@dataclass(slots=True)
class Cost:
    """Seconds of the clock, of this process's CPU and of the server's."""

    wall: float = 0.0
    client: float = 0.0
    server: float = 0.0


@dataclass(slots=True)
class Figures:
    """What one index showed.  `met` and `kept` are candidates by lookup, before and after they were nominated."""

    build: Cost = field(default_factory=Cost)
    insert: Cost = field(default_factory=Cost)
    near: Cost = field(default_factory=Cost)
    lookup: Cost = field(default_factory=Cost)
    usual: Cost = field(default_factory=Cost)
    met: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    found: dict[str, list[bool]] = field(default_factory=dict)
    capped: int = 0
    bytes: int = 0


Used = Callable[[], float]  # CPU seconds of the index's server so far


async def measure(index: Index, stories: Stories, probes: Probes, used: Used, scratch: Path) -> Figures:
    """Put all the stories in, then look all the probes up."""
    figures = Figures()
    await index.clear("bench", "bench", {LANGUAGE: len(stories)})
    first = len(stories) - INSERTS
    async with _clock(figures.build, used):
        async for _ in index.build(_pages(stories, first), scratch):
            pass
    for changes in stories.changes(first, len(stories), BATCH):
        async with _clock(figures.insert, used):
            await index.apply(changes, changes[-1].seq)
    await index.lookup(probes.stories.banded(0, 1))  # whatever comes with a first call
    for start in range(0, PROBES, PROBED):
        batch = probes.stories.banded(start, start + PROBED)
        near = [replace(probe, signature=None) for probe in batch]
        async with _clock(figures.near, used):
            await index.lookup(near)
        async with _clock(figures.lookup, used):
            _, found = await index.lookup(batch)
        for place, (probe, one) in enumerate(zip(batch, found, strict=True), start):
            nominee, met = _nominated(stories, probe, one)
            figures.met.append(met)
            figures.kept.append(len(nominee.matches) + nominee.capped)
            figures.capped += bool(one.capped)
            original = int(probes.originals[place]) + FIRST_ID
            figures.found.setdefault(probes.kinds[place], []).append(original in nominee.matches)
    return figures


async def _pages(stories: Stories, stop: int) -> AsyncIterator[FingerprintArrays]:
    for start in range(0, stop, PAGE):
        yield _columns(stories, np.arange(start, min(start + PAGE, stop)))


@asynccontextmanager
async def _clock(cost: Cost, used: Used) -> AsyncIterator[None]:
    served, began, spent = used(), time.perf_counter(), time.process_time()
    yield
    cost.wall += time.perf_counter() - began
    cost.client += time.process_time() - spent
    cost.server += used() - served


def _nominated(stories: Stories, probe: Banded, found: LookupResult) -> tuple[Nominee, int]:
    """What a run would have compared with a probe, had it come alone, and how many stories it met."""
    ids = np.fromiter(found.ids, np.int64, len(found.ids)) - FIRST_ID
    met = np.union1d(ids, found.numbers.astype(np.int64) - 1)
    [nominee] = nominate([([NOBODY], probe)], [found], _columns(stories, met), LIMITS)
    return nominee, len(met)


def _columns(stories: Stories, places: npt.NDArray[np.int64]) -> FingerprintArrays:
    return FingerprintArrays(
        (places + 1).astype(np.uint32),
        places + FIRST_ID,
        np.full(len(places), LANGUAGES.index(LANGUAGE), np.uint8),
        np.ascontiguousarray(stories.simhashes[places]).view(np.uint64),
        stories.signatures[places],
        np.ones(len(places), np.bool_),
        NAMES,
    )


async def in_sqlite(folder: Path, stories: Stories, probes: Probes) -> Figures:
    path = folder / "index.db"
    index = SqliteIndex(path, DETECTION.bandings(LANGUAGES))
    with TemporaryDirectory(dir=folder) as scratch:
        figures = await measure(index, stories, probes, lambda: 0.0, Path(scratch))
    await index.close()
    figures.bytes = path.stat().st_size
    return figures


async def in_redis(folder: Path, stories: Stories, probes: Probes, layout: Layout) -> Figures:
    with redis_server(folder, *INTSETS) as url, redis.Redis.from_url(url, socket_timeout=None) as client:
        empty = scale_bytes.used(client)
        index = await open_redis(url, DETECTION.bandings(LANGUAGES), CODES, layout)
        with TemporaryDirectory(dir=folder) as scratch:
            figures = await measure(index, stories, probes, partial(redis_cpu, client), Path(scratch))
        figures.bytes = scale_bytes.used(client) - empty
        await index.close()
        if layout == "documented":
            for start in range(0, USUAL, USUAL_BATCH):
                async with _clock(figures.usual, partial(redis_cpu, client)):
                    look_up(client, probes.stories.banded(start, start + USUAL_BATCH), DETECTION.hamming)
    return figures


def show(columns: Mapping[str, Figures], stories: int) -> None:
    """A column an index and kind of stories, a row a figure."""
    rows: dict[str, Callable[[Figures], str]] = {
        "built, seconds a million": lambda f: f"{f.build.wall * report.MICRO / (stories - INSERTS):,.1f}",
        f"then inserted by {BATCH}, stories/s": lambda f: f"{INSERTS / f.insert.wall:,.0f}",
        "insert, client CPU us": lambda f: f"{f.insert.client * report.MICRO / INSERTS:,.0f}",
        "insert, server CPU us": lambda f: f"{f.insert.server * report.MICRO / INSERTS:,.0f}",
        "lookups/s, SimHash": lambda f: f"{PROBES / f.near.wall:,.0f}",
        "lookup, SimHash, client and server CPU us": lambda f: _cpu(f.near, PROBES),
        "lookups/s by SUNION and HMGET": lambda f: f"{USUAL / f.usual.wall:,.0f}" if f.usual.wall else "",
        "SUNION and HMGET, client and server CPU us": lambda f: _cpu(f.usual, USUAL) if f.usual.wall else "",
        "lookups/s, both": lambda f: f"{PROBES / f.lookup.wall:,.0f}",
        "lookup, both, client and server CPU us": lambda f: _cpu(f.lookup, PROBES),
        "candidates, mean p50 p99": lambda f: _spread(f.met),
        "of these nominated, mean p50 p99": lambda f: _spread(f.kept),
        **{f"found, {kind}": partial(_recall, kind) for kind in COPIES},
        "lookups that met a capped bucket": lambda f: f"{f.capped / PROBES:.4f}",
        "bytes a story": lambda f: f"{f.bytes / stories:,.0f}",
    }
    table = report.table_of("", *columns)
    for name, figure in rows.items():
        table.add_row(name, *map(figure, columns.values()))
    report.out.print(table)


def _cpu(cost: Cost, count: int) -> str:
    return f"{cost.client * report.MICRO / count:,.0f} {cost.server * report.MICRO / count:,.0f}"


def _recall(kind: str, figures: Figures) -> str:
    return f"{np.mean(figures.found[kind]):.4f}"


def _spread(counts: Sequence[int]) -> str:
    return f"{np.mean(counts):,.1f} {np.percentile(counts, 50):,.0f} {np.percentile(counts, 99):,.0f}"


FLOWS: Mapping[str, Callable[[Path, Stories, Probes], Coroutine[Any, Any, Figures]]] = {
    "SQLite": in_sqlite,
    "documented": partial(in_redis, layout="documented"),
    "compact": partial(in_redis, layout="compact"),
}


async def run(stories: int, kinds: Mapping[str, Source], folder: Path, only: str | None) -> dict[str, Figures]:
    columns = {}
    for kind, source in kinds.items():
        rng = np.random.default_rng(SEED)
        made = synthetic.draw(rng, source, stories)
        probes = make_probes(rng, source, made, PROBES)
        for name, flow in FLOWS.items():
            if only and name != only:
                continue
            click.echo(f"{name}, {kind}", err=True)
            with TemporaryDirectory(dir=folder) as own:
                columns[f"{name}\n{kind}"] = await flow(Path(own), made, probes)
    return columns


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=2 * INSERTS))
@click.option("--only", type=click.Choice(list(FLOWS)), help="one index instead of all")
def main(stories: int, only: str | None) -> None:
    """Measure the indexes on synthetic stories: uniform ones, and as uneven as prose."""
    kinds = {"uniform": synthetic.uniform(), "prose": synthetic.prose(LANGUAGE)}
    with (
        TemporaryDirectory(prefix="neardup-bench-") as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        columns = runner.run(run(stories, kinds, Path(folder), only))
    click.echo(f"{machine()}; Redis and the client share the cores; one run each, batches of {BATCH}")
    buckets = ", ".join(f"{kind} {stories * source.collision():,.0f}" for kind, source in kinds.items())
    click.echo(f"{stories:,} {LANGUAGE} stories; others in a story's bucket of signatures, on average: {buckets}")
    click.echo(f"{PROBES:,} probes: half strangers, half copies, a third of each kind\n")
    show(columns, stories)


if __name__ == "__main__":
    main()
