"""The stages that `make bench-scale` measures, each in a process of its own; figures are in seconds and bytes."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import structlog
import uvloop
from msgspec import Struct, field
from neardup.config import Detection, Run
from neardup.core.candidates.all_pairs import Shortlist, find_near_pairs
from neardup.core.candidates.select import Nominee, merge_found, select_matches
from neardup.core.columns import Outcomes
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import Index, LookupResult
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.client import cut_batches
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, candidates, outbox, runs, versions
from neardup.ledger.languages import count_by_language
from neardup.pages.reader_pool import ReaderPool
from neardup.pipeline.index_sync import IndexWait, rebuild
from neardup.pipeline.summary import Counts, ignore_progress
from neardup.pipeline.sweep import Sweep, load_fingerprints
from neardup.pipeline.writer import Writer
from neardup.records import Fingerprinted, Language

from tests.bench import passages
from tests.bench.ledger_size import BATCH
from tests.bench.scale_corpus import Probe, without_signatures
from tests.bench.subject import stage_seconds
from tests.support.languages import CODES
from tests.support.passages import passages_of
from tests.support.resource_meter import cpu_seconds, peak_rss_mb
from tests.support.synthetic import commit

VERSION = fingerprint_version.version()
DETECTION = Detection()
LAYOUTS: tuple[Layout, ...] = ("compact", "documented")
INDEXES = (*LAYOUTS, "sqlite")

Figures = dict[str, Any]


class Setup(Struct, frozen=True):
    """A ledger, and the index to measure: with a layout, in the Redis at `url`; without one, in the SQLite `file`."""

    ledger: Path
    layout: Layout | None = None
    url: str = ""

    @property
    def file(self) -> Path:
        return self.ledger.with_name("index.db")

    async def open_index(self) -> SqliteIndex | RedisIndex:
        if self.layout is None:
            return SqliteIndex(self.file, DETECTION.bandings(LANGUAGES))
        return await open_redis(self.url, DETECTION.bandings(LANGUAGES), CODES, self.layout)


Stage = Callable[..., Coroutine[None, None, Figures]]


def in_own_process(stage: Stage, setup: Setup, *arguments: object) -> Figures:
    """Run a stage in a process of its own; returns its figures and the peak memory of that process."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context) as process:
        return process.submit(run_stage, stage, setup, *arguments).result()


def run_stage(stage: Stage, setup: Setup, *arguments: object) -> Figures:
    """Run a stage in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(stage(setup, *arguments)) | {"peak_rss_mb": peak_rss_mb()}


@asynccontextmanager
async def opened(setup: Setup) -> AsyncIterator[tuple[SqliteIndex | RedisIndex, Ledger]]:
    index, ledger = await setup.open_index(), Ledger(setup.ledger)
    try:
        yield index, ledger
    finally:
        await index.close()
        ledger.close()


@contextmanager
def _timed() -> Iterator[Figures]:
    """Fill in the wall time and the CPU time of the enclosed work, in seconds."""
    figures: Figures = {}
    wall_start, cpu_start = time.perf_counter(), cpu_seconds()
    yield figures
    figures |= {"seconds": time.perf_counter() - wall_start, "cpu": cpu_seconds() - cpu_start}


async def reindex(setup: Setup) -> Figures:
    async with opened(setup) as (index, ledger):
        with _timed() as figures:
            figures["stories"] = await rebuild(index, ledger, VERSION)
        return figures | await _counts(index, ledger)


async def _counts(index: Index, ledger: Ledger) -> Figures:
    """The number of stories of each language, in the ledger and in the index."""
    return {"in_ledger": await ledger.do(count_by_language), "in_index": await index.count_stories()}


async def insert(setup: Setup, stories: Sequence[Fingerprinted]) -> Figures:
    """Commit new stories to the ledger, then measure inserting them into the index batch by batch."""
    async with opened(setup) as (index, ledger):
        before = await ledger.do(outbox.read_last_seq)
        await ledger.do(commit, stories)
        new = await ledger.do(outbox.list_changes, before, len(stories))
        with _timed() as figures:
            for batch in cut_batches(new, BATCH):
                await index.apply(batch, batch[-1].seq)
        return figures | {"stories": len(new)}


async def daily(setup: Setup, stories: Sequence[Fingerprinted]) -> Figures:
    """The work of a daily run on new stories after they are fingerprinted: look up, nominate, commit, insert."""
    async with opened(setup) as (index, ledger):
        writer = Writer(
            ledger,
            index,
            DETECTION,
            VERSION,
            passages=await passages_of(ledger),
            index_wait=IndexWait(ledger),
            run_id=await ledger.do(runs.begin, "daily"),
            counts=Counts(),
            live_facts=dict,
            checkpoint=lambda resume: None,
            committed=lambda: None,
        )
        pending = await ledger.do(candidates.count_pending)
        with _timed() as figures:
            async with writer:
                for batch in map(Outcomes.of, cut_batches(stories, BATCH)):
                    await writer.write(batch, await writer.look_up(batch), 0)
        figures |= {"stories": len(stories), "pairs": await ledger.do(candidates.count_pending) - pending}
        figures["stages"] = {stage: seconds for stage, seconds in stage_seconds().items() if seconds}
        return figures | await _counts(index, ledger)


async def sweep(setup: Setup) -> Figures:
    """The work of a sweep before verification: read all fingerprints, nominate; and finding the near pairs alone."""
    ledger = Ledger(setup.ledger)
    last_change = await ledger.do(outbox.read_last_seq)
    sizes = {Language(name): n for name, n in (await ledger.do(count_by_language)).items()}
    work = Sweep(
        ledger, DETECTION, VERSION, section=Run(), open_readers=_no_readers, stop=asyncio.Event(), watch=ignore_progress
    )
    with _timed() as load:
        by_language = await load_fingerprints(ledger, sizes, last_change, asyncio.Event())
    figures: Figures = {"load": load["seconds"], "near": 0.0, "nominate": 0.0, "pairs": 0, "left_out": 0}
    for language in sizes:
        hamming, stories = DETECTION.of(language).hamming, by_language.pop(language)
        for _ in find_near_pairs(stories.simhashes[:1], hamming):
            pass  # the first call loads compiled code
        with _timed() as near:
            for _ in find_near_pairs(stories.simhashes, hamming):
                pass
        shortlist = Shortlist(stories, DETECTION.of(language).max_matches)
        with _timed() as nominating:
            await work._nominate(language, stories, shortlist)
            figures["pairs"] += len(shortlist)
        figures["near"] += near["seconds"]
        figures["nominate"] += nominating["seconds"]
        figures["left_out"] += shortlist.left_out
    ledger.close()
    return figures | {"stories": sum(sizes.values())}


def _no_readers() -> ReaderPool:
    raise AssertionError("this stage verifies no pair, so it must not open readers")


THRESHOLDS = {language: DETECTION.of(language) for language in LANGUAGES}
TIERS = ("near", "both")  # lookups by SimHash alone, and by SimHash and signature


class Lookups(Struct, frozen=True):
    """The probes, and the number of the ledger's last story when they were drawn."""

    probes: Sequence[Probe]
    last: int


async def look_up(setup: Setup, lookups: Lookups) -> Figures:
    """The figures of the lookups of each tier, and the count and a digest of the pairs nominated by both fingerprints.

    Pairs with stories after `lookups.last` are left out, so that all indexes must give the same digest.
    """
    async with opened(setup) as (index, ledger):
        figures: Figures = {}
        pairs, digest = 0, blake2b(digest_size=8)
        for tier, probes in zip(TIERS, (without_signatures(lookups.probes), lookups.probes), strict=True):
            await index.look_up([probes[0].banded])  # the first lookup loads compiled code
            tally = _Tally()
            for batch in cut_batches(probes, BATCH):
                start = time.perf_counter()
                _, results = await index.look_up([probe.banded for probe in batch])
                tally.seconds.append(time.perf_counter() - start)
                tally.add(batch, results)
                if tier == TIERS[-1]:
                    for nominee in await _nominated(ledger, batch, results, lookups.last):
                        pairs += len(nominee.matches)
                        digest.update(repr(nominee).encode())
            figures[tier] = tally.figures()
        return figures | {"nominated": {"pairs": pairs, "digest": digest.hexdigest()}}


async def _nominated(
    ledger: Ledger, batch: Sequence[Probe], results: Sequence[LookupResult], last: int
) -> list[Nominee]:
    """The matches that a run would nominate for these lookup results, without stories after `last`."""
    candidates = await ledger.do(versions.read_existing_fingerprints, *merge_found(results))
    groups = [([-1 - n], probe.banded) for n, probe in enumerate(batch)]
    return select_matches(groups, results, candidates.where(candidates.numbers <= last), THRESHOLDS)


class _Tally(Struct):
    """Counts of lookups.

    `seconds` has the time of each batch.  `found` records, for each planted copy, whether its original was found.
    `candidates` has the number of candidates of each unrelated probe, by language and for `all`.
    """

    seconds: list[float] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    candidates: dict[str, list[int]] = field(default_factory=dict)
    lookups: int = 0
    large: int = 0

    def add(self, batch: Sequence[Probe], results: Sequence[LookupResult]) -> None:
        self.lookups += len(batch)
        for probe, result in zip(batch, results, strict=True):
            number, story_id = probe.original
            self.large += bool(result.large)
            if not number:
                for group in ("all", probe.banded.language):
                    self.candidates.setdefault(group, []).append(len(result.ids) + len(result.numbers))
            elif probe.near or probe.shares_bands:
                self.found.append(number in result.numbers or story_id in result.ids)

    def figures(self) -> Figures:
        return {
            "lookups": self.lookups,
            "per_second": self.lookups / sum(self.seconds),
            "batch_milliseconds": _mean_p50_p99([1000 * seconds for seconds in self.seconds]),
            "planted": len(self.found),
            "recall": float(np.mean(self.found)),
            "large": self.large,
            "candidates": {group: _mean_p50_p99(counts) for group, counts in self.candidates.items()},
        }


def _mean_p50_p99(values: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), **{f"p{n}": float(np.percentile(values, n)) for n in (50, 99)}}


FOLDER = "passages"


def measure(ledger: Path, stories: int) -> Figures:
    """The figures of each stage on an index of this many stories, which is removed afterwards."""
    setup = Setup(ledger)
    stages: dict[str, tuple[Callable[..., passages.Figures], bool | None]] = {
        "build": (passages.build, False),
        "cold": (passages.lookups, True),
        "warm": (passages.lookups, False),
        "join": (passages.join, None),
        "check": (passages.check, None),
    }
    figures = {name: in_own_process(_stage, setup, work, stories, option) for name, (work, option) in stages.items()}
    rmtree(_folder(setup))
    return figures


async def _stage(setup: Setup, work: Callable[..., passages.Figures], stories: int, option: bool | None) -> Figures:
    folder, start = _folder(setup), time.perf_counter()
    figures = work(folder, stories) if option is None else work(folder, stories, option)
    return {**figures, "seconds": time.perf_counter() - start}


def _folder(setup: Setup) -> Path:
    return setup.ledger.with_name(FOLDER)
