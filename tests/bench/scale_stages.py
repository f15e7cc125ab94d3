"""What the bench at full size measures, each stage by `alone` in a process of its own; figures in seconds and bytes."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import structlog
import uvloop
from neardup.config import Detection
from neardup.core.candidates.all_pairs import near_pairs
from neardup.core.candidates.top_k import Shortlist
from neardup.core.fingerprint import version as fingerprint_version
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.base import RedisIndex
from neardup.index.redis.commands import batches
from neardup.index.sqlite import SqliteIndex
from neardup.index.statistics import BucketStatistics
from neardup.languages import LANGUAGES
from neardup.ledger import Ledger, candidates, changes, runs
from neardup.pages.reader_pool import ReaderPool
from neardup.pipeline.index_sync import rebuild
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.progress import unwatched
from neardup.pipeline.summary import Counts
from neardup.pipeline.sweep import Sweep
from neardup.pipeline.writer import Writer
from neardup.records import Fingerprinted, Language

from tests.bench.ledger_size import BATCH
from tests.bench.subject import stage_seconds
from tests.support.languages import CODES
from tests.support.resource_meter import cpu_seconds, peak_rss_mb
from tests.support.synthetic_stories import commit

VERSION = fingerprint_version.version()
DETECTION = Detection()
LAYOUTS: tuple[Layout, ...] = ("compact", "documented")
INDEXES = (*LAYOUTS, "sqlite")

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bed:
    """A ledger, and the index that is measured: a layout in the Redis at `url`, or a SQLite file of its own."""

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


def alone(stage: Stage, bed: Bed, *given: object) -> Figures:
    """What a stage measured in a process of its own, and that process's peak of memory."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context) as process:
        return process.submit(_measured, stage, bed, *given).result()


def _measured(stage: Stage, bed: Bed, *given: object) -> Figures:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(stage(bed, *given)) | {"peak_rss_mb": peak_rss_mb()}


@asynccontextmanager
async def opened(bed: Bed) -> AsyncIterator[tuple[SqliteIndex | RedisIndex, Ledger]]:
    index, ledger = await bed.open_index(), Ledger(bed.ledger)
    try:
        yield index, ledger
    finally:
        await index.close()
        ledger.close()


@contextmanager
def _clock() -> Iterator[Figures]:
    """Fills in the seconds of the enclosed work, on the clock and of this process's CPU."""
    figures: Figures = {}
    began, spent = time.perf_counter(), cpu_seconds()
    yield figures
    figures |= {"seconds": time.perf_counter() - began, "cpu": cpu_seconds() - spent}


async def reindex(bed: Bed) -> Figures:
    async with opened(bed) as (index, ledger):
        with _clock() as figures:
            figures["stories"] = await rebuild(index, ledger, VERSION)
        return figures | await _counts(index, ledger)


async def _counts(index: BucketStatistics, ledger: Ledger) -> Figures:
    """The stories of each language, in the ledger and in the index."""
    return {"in_ledger": await ledger.do(runs.stories_by_language), "in_index": await index.story_counts()}


async def insert(bed: Bed, stories: Sequence[Fingerprinted]) -> Figures:
    """Put new stories into the ledger, then, batch by batch and on the clock, into the index."""
    async with opened(bed) as (index, ledger):
        before = await ledger.do(changes.last_seq)
        await ledger.do(commit, stories)
        new = await ledger.do(changes.after, before, len(stories))
        with _clock() as figures:
            for batch in batches(new, BATCH):
                await index.apply(batch, batch[-1].seq)
        return figures | {"stories": len(new)}


async def daily(bed: Bed, stories: Sequence[Fingerprinted]) -> Figures:
    """What a daily run does of new stories, once they are fingerprinted: look up, commit, insert."""
    async with opened(bed) as (index, ledger):
        writer = Writer(
            ledger,
            index,
            DETECTION,
            VERSION,
            index_wait=IndexWait(ledger),
            run_id=await ledger.do(runs.begin, "daily"),
            counts=Counts(),
            standing=dict,
            checkpoint=lambda resume: None,
            committed=lambda: None,
        )
        pending = await ledger.do(candidates.pending_count)
        with _clock() as figures:
            async with writer:
                for batch in batches(stories, BATCH):
                    await writer.write(batch, await writer.look_up(batch), 0)
        figures |= {"stories": len(stories), "pairs": await ledger.do(candidates.pending_count) - pending}
        figures["stages"] = {stage: seconds for stage, seconds in stage_seconds().items() if seconds}
        return figures | await _counts(index, ledger)


async def sweep(bed: Bed) -> Figures:
    """What a sweep does before it judges: read all fingerprints, nominate; and of that the near pairs alone."""
    ledger = Ledger(bed.ledger)
    sizes = {Language(name): n for name, n in (await ledger.do(runs.stories_by_language)).items()}
    work = Sweep(ledger, DETECTION, VERSION, open_readers=_no_readers, stop=asyncio.Event(), watch=unwatched)
    with _clock() as load:
        held = await work._load(sizes)
    figures: Figures = {"load": load["seconds"], "near": 0.0, "nominate": 0.0, "pairs": 0, "left_out": 0, "capped": 0}
    for language in sizes:
        banding, mine = DETECTION.banding(language), held.pop(language)
        for _ in near_pairs(mine.simhashes[:1], banding.hamming, banding.max_bucket):
            pass  # whatever comes with a first call
        with _clock() as near:
            for _ in near_pairs(mine.simhashes, banding.hamming, banding.max_bucket):
                pass
        shortlist = Shortlist(mine, DETECTION.of(language).max_matches)
        with _clock() as nominating:
            capped = await work._nominate(language, mine, shortlist)
            figures["pairs"] += len(shortlist)
        figures["near"] += near["seconds"]
        figures["nominate"] += nominating["seconds"]
        figures["left_out"] += shortlist.left_out
        figures["capped"] += len(capped)
    ledger.close()
    return figures | {"stories": sum(sizes.values())}


def _no_readers() -> ReaderPool:
    raise AssertionError("nothing is verified here, and no page is read")
