"""`make bench-candidates`: measures candidate generation alone, for many stories of one language, in each index.

The index is built from synthetic fingerprints, except for the last ones, which are inserted in batches as a run inserts
them.  Then probes are looked up, batch by batch, first by their SimHashes alone, then by both fingerprints; half of the
probes are unrelated to all stories, half are edited copies.  For comparison, the usual lookup fetches all members of
all bands with SUNION and their hashes with HMGET.  Figures are printed, never asserted.
"""

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import redis
import uvloop
from msgspec import Struct, field
from msgspec.structs import replace
from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays, cut_band_values
from neardup.core.candidates.select import Nominee, select_matches
from neardup.core.fingerprint.word_hashes import hash_rows, measure_hamming
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import Index, LookupResult
from neardup.index.redis import Layout, open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.records import BandedFingerprint

from tests.bench import report, scale_bytes
from tests.bench.report import redis_cpu
from tests.support import synthetic
from tests.support.languages import CODES, NAMES
from tests.support.resource_meter import machine
from tests.support.servers import redis_server
from tests.support.synthetic import COPY_KINDS, FIRST_ID, LANGUAGE, Distribution, Probes, Stories, make_probes


def look_up(client: redis.Redis, batch: Sequence[BandedFingerprint], distance: int) -> list[int]:
    """For each probe, the number of stories within the Hamming distance, found with SUNION and HMGET."""
    pipe = client.pipeline(transaction=False)
    for probe in batch:
        pipe.sunion([f"{LANGUAGE}:{band}:{value}" for band, value in enumerate(cut_band_values(probe.simhash))])
    members = [list(ids) for ids in pipe.execute()]
    for ids in filter(None, members):
        pipe.hmget(f"simhashes:{LANGUAGE}", ids)
    hashes = iter(pipe.execute())
    return [_near(next(hashes), probe, distance) if ids else 0 for probe, ids in zip(batch, members, strict=True)]


def _near(digits: Sequence[bytes], probe: BandedFingerprint, distance: int) -> int:
    rows = hash_rows([bytes.fromhex(hexadecimal.decode()) for hexadecimal in digits])
    return int(np.count_nonzero(measure_hamming(rows, hash_rows([probe.simhash])) <= distance))


PROBES = 20_000
BATCH = 256  # the default of run.batch
INSERTS = 20 * BATCH  # how many of the stories are inserted in batches
PROBES_PER_LOOKUP = 2 * BATCH  # Redis reads the buckets of one half while the client processes the other
PAGE = 50_000
SUNION_PROBES, SUNION_BATCH = 512, 32  # few probes, because SUNION and HMGET are slow
SEED = 1
INTSETS = ("--set-max-intset-entries", "1000000")  # as in deploy/redis.conf
PROBE_ID = -1  # no story has this id
DETECTION = Detection()
THRESHOLDS = {LANGUAGE: DETECTION.of(LANGUAGE)}


class Cost(Struct):
    """Seconds of wall time, of this process's CPU and of the server's CPU."""

    wall: float = 0.0
    client: float = 0.0
    server: float = 0.0


class Figures(Struct):
    """The figures of one index.

    `candidates` and `nominated` have a count for each lookup.  `found` lists by kind, for each probe, whether its
    original was nominated.  `large` counts lookups that read a bucket over max_bucket.
    """

    build: Cost = field(default_factory=Cost)
    insert: Cost = field(default_factory=Cost)
    simhash_lookup: Cost = field(default_factory=Cost)
    lookup: Cost = field(default_factory=Cost)
    sunion: Cost = field(default_factory=Cost)
    candidates: list[int] = field(default_factory=list)
    nominated: list[int] = field(default_factory=list)
    found: dict[str, list[bool]] = field(default_factory=dict)
    large: int = 0
    bytes: int = 0


ServerCpu = Callable[[], float]  # CPU seconds of the index's server so far


async def measure(index: Index, stories: Stories, probes: Probes, server_cpu: ServerCpu, scratch: Path) -> Figures:
    """Build the index, insert the last stories, then look up all probes."""
    figures = Figures()
    await index.clear("bench", "bench", {LANGUAGE: len(stories)})
    first = len(stories) - INSERTS
    async with _timed(figures.build, server_cpu):
        async for _ in index.build(_pages(stories, first), scratch):
            pass
    for changes in stories.changes(first, len(stories), BATCH):
        async with _timed(figures.insert, server_cpu):
            await index.apply(changes, changes[-1].seq)
    await index.look_up(probes.stories.banded(0, 1))  # the first lookup loads compiled code
    for start in range(0, PROBES, PROBES_PER_LOOKUP):
        batch = probes.stories.banded(start, start + PROBES_PER_LOOKUP)
        simhashes_only = [replace(probe, signature=None) for probe in batch]
        async with _timed(figures.simhash_lookup, server_cpu):
            await index.look_up(simhashes_only)
        async with _timed(figures.lookup, server_cpu):
            _, results = await index.look_up(batch)
        for n, (probe, result) in enumerate(zip(batch, results, strict=True), start):
            nominee, candidates = _nominated(stories, probe, result)
            figures.candidates.append(candidates)
            figures.nominated.append(len(nominee.matches) + nominee.capped)
            figures.large += bool(result.large)
            original = int(probes.originals[n]) + FIRST_ID
            figures.found.setdefault(probes.kinds[n], []).append(original in nominee.matches)
    return figures


async def _pages(stories: Stories, stop: int) -> AsyncIterator[FingerprintArrays]:
    for start in range(0, stop, PAGE):
        yield _arrays(stories, np.arange(start, min(start + PAGE, stop)))


@asynccontextmanager
async def _timed(cost: Cost, server_cpu: ServerCpu) -> AsyncIterator[None]:
    server_start, wall_start, client_start = server_cpu(), time.perf_counter(), time.process_time()
    yield
    cost.wall += time.perf_counter() - wall_start
    cost.client += time.process_time() - client_start
    cost.server += server_cpu() - server_start


def _nominated(stories: Stories, probe: BandedFingerprint, result: LookupResult) -> tuple[Nominee, int]:
    """The matches that a run would nominate for a probe in a batch of its own, and the number of its candidates."""
    ids = np.fromiter(result.ids, np.int64, len(result.ids)) - FIRST_ID
    candidates = np.union1d(ids, result.numbers.astype(np.int64) - 1)
    [nominee] = select_matches([([PROBE_ID], probe)], [result], _arrays(stories, candidates), THRESHOLDS)
    return nominee, len(candidates)


def _arrays(stories: Stories, positions: npt.NDArray[np.int64]) -> FingerprintArrays:
    return FingerprintArrays(
        (positions + 1).astype(np.uint32),
        positions + FIRST_ID,
        np.full(len(positions), LANGUAGES.index(LANGUAGE), np.uint8),
        np.ascontiguousarray(stories.simhashes[positions]).view(np.uint64),
        stories.signatures[positions],
        np.ones(len(positions), np.bool_),
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
        empty = scale_bytes.used_memory(client)
        index = await open_redis(url, DETECTION.bandings(LANGUAGES), CODES, layout)
        with TemporaryDirectory(dir=folder) as scratch:
            figures = await measure(index, stories, probes, partial(redis_cpu, client), Path(scratch))
        figures.bytes = scale_bytes.used_memory(client) - empty
        await index.close()
        if layout == "documented":
            for start in range(0, SUNION_PROBES, SUNION_BATCH):
                async with _timed(figures.sunion, partial(redis_cpu, client)):
                    look_up(client, probes.stories.banded(start, start + SUNION_BATCH), DETECTION.hamming)
    return figures


def show(columns: Mapping[str, Figures], stories: int) -> None:
    """Print a column for each index and kind of stories, and a row for each figure."""
    rows: dict[str, Callable[[Figures], str]] = {
        "build, seconds per million stories": lambda f: f"{f.build.wall * report.MICRO / (stories - INSERTS):,.1f}",
        f"insert in batches of {BATCH}, stories/s": lambda f: f"{INSERTS / f.insert.wall:,.0f}",
        "insert, client CPU, us/story": lambda f: f"{f.insert.client * report.MICRO / INSERTS:,.0f}",
        "insert, server CPU, us/story": lambda f: f"{f.insert.server * report.MICRO / INSERTS:,.0f}",
        "lookup by SimHash, per second": lambda f: f"{PROBES / f.simhash_lookup.wall:,.0f}",
        "lookup by SimHash, client and server CPU us": lambda f: _cpu(f.simhash_lookup, PROBES),
        "SUNION and HMGET, per second": lambda f: f"{SUNION_PROBES / f.sunion.wall:,.0f}" if f.sunion.wall else "",
        "SUNION and HMGET, client and server CPU us": lambda f: _cpu(f.sunion, SUNION_PROBES) if f.sunion.wall else "",
        "lookup by both, per second": lambda f: f"{PROBES / f.lookup.wall:,.0f}",
        "lookup by both, client and server CPU us": lambda f: _cpu(f.lookup, PROBES),
        "candidates/lookup, mean p50 p99": lambda f: _mean_p50_p99(f.candidates),
        "nominated/lookup, mean p50 p99": lambda f: _mean_p50_p99(f.nominated),
        **{f"recall, {kind}": partial(_recall, kind) for kind in COPY_KINDS},
        "share of lookups with a bucket over max_bucket": lambda f: f"{f.large / PROBES:.4f}",
        "bytes/story": lambda f: f"{f.bytes / stories:,.0f}",
    }
    table = report.table_of("", *columns)
    for name, figure in rows.items():
        table.add_row(name, *map(figure, columns.values()))
    report.out.print(table)


def _cpu(cost: Cost, count: int) -> str:
    return f"{cost.client * report.MICRO / count:,.0f} {cost.server * report.MICRO / count:,.0f}"


def _recall(kind: str, figures: Figures) -> str:
    return f"{np.mean(figures.found[kind]):.4f}"


def _mean_p50_p99(counts: Sequence[int]) -> str:
    return f"{np.mean(counts):,.1f} {np.percentile(counts, 50):,.0f} {np.percentile(counts, 99):,.0f}"


FLOWS: Mapping[str, Callable[[Path, Stories, Probes], Coroutine[Any, Any, Figures]]] = {
    "SQLite": in_sqlite,
    "documented": partial(in_redis, layout="documented"),
    "compact": partial(in_redis, layout="compact"),
}


async def run(count: int, kinds: Mapping[str, Distribution], folder: Path, only: str | None) -> dict[str, Figures]:
    columns = {}
    for kind, distribution in kinds.items():
        rng = np.random.default_rng(SEED)
        stories = synthetic.draw(rng, distribution, count)
        probes = make_probes(rng, distribution, stories, PROBES)
        for name in [only] if only else FLOWS:
            click.echo(f"{name}, {kind}", err=True)
            with TemporaryDirectory(dir=folder) as own:
                columns[f"{name}\n{kind}"] = await FLOWS[name](Path(own), stories, probes)
    return columns


@click.command()
@click.option("--stories", default=1_000_000, show_default=True, type=click.IntRange(min=2 * INSERTS))
@click.option("--only", type=click.Choice(list(FLOWS)), help="measure this index alone")
def main(stories: int, only: str | None) -> None:
    """Measure the indexes on synthetic stories: uniform ones, and ones as skewed as prose."""
    kinds = {"uniform": synthetic.uniform(), "prose": synthetic.prose(LANGUAGE)}
    with TemporaryDirectory(prefix="neardup-bench-") as folder:
        columns = uvloop.run(run(stories, kinds, Path(folder), only))
    click.echo(f"{machine()}; Redis and the client share the cores; one run each, batches of {BATCH}")
    sizes = ", ".join(f"{stories * kind.signature_collision():,.0f} ({name})" for name, kind in kinds.items())
    click.echo(f"{stories:,} {LANGUAGE} stories; average size of a story's signature bucket: {sizes}")
    click.echo(f"{PROBES:,} probes: half unrelated, half copies in equal parts of {len(COPY_KINDS)} kinds\n")
    show(columns, stories)


if __name__ == "__main__":
    main()
