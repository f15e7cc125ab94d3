"""One run over a listing; backfill, daily and retry runs, and those over a reference, differ in their listings.

A run works with `Parts` as its `Options` say: it brings the indexes in step with the ledger, lists stories, sends them
through the stages of neardup.pipeline.stages, and checks the index again before the last candidates are verified.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from msgspec import Struct

from neardup.config import Detection
from neardup.config import Run as RunSection
from neardup.core.columns import ListedBlock, Outcomes
from neardup.core.fingerprint.version import algorithm
from neardup.core.languages import Languages
from neardup.errors import Fatal, Misuse
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, candidates, now_ms, outbox, removed_texts, runs, stories
from neardup.ledger.languages import count_by_language
from neardup.nomination.passages import count_again
from neardup.pages.fork_server import start_server
from neardup.pages.limits import CircuitBreaker
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.gauges import connect_gauges, describe_bottleneck, keep_gauges
from neardup.pipeline.index_check import IndexCheck
from neardup.pipeline.index_sync import KEPT_CHANGES, IndexWait, prepare_index, rebuild
from neardup.pipeline.passage_sync import PassageReading, PassageSync
from neardup.pipeline.quarantine import Quarantine
from neardup.pipeline.returned_texts import find_returned
from neardup.pipeline.run_lifecycle import finish_unless_stopped
from neardup.pipeline.stages import Pipeline
from neardup.pipeline.submitted_pages import remove_unused
from neardup.pipeline.summary import Phase, Progress, RunSummary, Watch
from neardup.pipeline.upkeep import select_again, settle_all
from neardup.pipeline.verifier import NewFlags, Verifier
from neardup.pipeline.worker import (
    Jobs,
    ListedStories,
    Worker,
    is_nearly_nothing_read,
    keep_examples,
    read_known,
    refuse_unreadable,
)
from neardup.pipeline.writer import BatchLookup, Writer
from neardup.records import BadRow, Checkpoint, format_time
from neardup.source import Source
from neardup.source.listings import Folder
from neardup.telemetry.log import log
from neardup.telemetry.metrics import measure_latencies, read_stage_seconds

FRESH_PAYS = 30_000  # stories: see deploy/docs/speed.md
CheckpointWriter = Callable[[Checkpoint], Awaitable[None]]
LISTING_BEGAN = "listing_began"  # key of the ledger's last change before the listing of a backfill began
PAGES_AHEAD = 2  # times as many pages are asked for as are fetched at once, so that no reader process waits
EMPTY_LISTING = "[reference] lists no works; look at reference.manifest, or reference.sql for Athena"
REMOVED_AT_ONCE = 100  # stories in one transaction


class Options(Struct, frozen=True):
    """The options of a run.

    - `since`: the time (milliseconds) from which to list; for a daily run, instead of the watermark.
    - `needs_watermark`: refuse a daily run that has neither `since` nor a watermark.
    - `refingerprint_for`: as in `prepare_index`.
    - `fresh`: make no lookups, and build the index at the end.  The ledger records that a sweep is owed, which finds
      the pairs.
    - `dead_letters`: the listing is of dead letters.  Read the stories in quarantine too.
    - `moves_watermark`: the listing is of the platform's stories, all of them or those of a time.
    """

    command: str
    since: int | None = None
    needs_watermark: bool = False
    refingerprint_for: str | None = None
    fresh: bool = False
    dead_letters: bool = False
    moves_watermark: bool = True


class FreshProposal:
    """Proposes `--fresh` once, during a first backfill that is large enough for it to pay."""

    def __init__(self, options: Options) -> None:
        self._is_due = options.command == "backfill" and not options.fresh

    def consider(self, progress: Progress, held_before: int) -> None:
        """Log the proposal if the listing, by its size and the rows so far, has FRESH_PAYS stories or more.

        `held_before` is the number of stories on record when the run began.
        """
        if not self._is_due or not progress.position:
            return
        self._is_due = False
        stories = progress.counts.listed * progress.size // progress.position
        if stories >= FRESH_PAYS and not held_before:
            log.info("a first backfill of this size is faster with --fresh", about=stories, pays_from=FRESH_PAYS)


class Parts(Struct, frozen=True):
    """The parts that a run works with.

    `reader` is a second, read-only connection to the ledger; `section` is [run] of the configuration.  `open_source`
    opens the listing, and gives it the function with which a resumable listing records its first checkpoint.
    """

    ledger: Ledger
    reader: Ledger
    index: Index
    passages: PassageIndex
    index_wait: IndexWait
    version: str
    section: RunSection
    detection: Detection
    languages: Languages
    open_source: Callable[[CheckpointWriter], Awaitable[Source]]
    open_readers: OpenReaderPool


class Run:
    """One run, for `run_lifecycle.carry_out`.

    Raises Transient if the index does not answer at the start, Misuse for a run without the watermark that it needs,
    Stopped if `stop` is set before the run begins, StoreDown, and Fatal for errors that an operator must fix.
    """

    def __init__(self, parts: Parts, options: Options, stop: asyncio.Event, watch: Watch) -> None:
        self._index_check = IndexCheck(parts.index, parts.ledger, parts.detection, parts.version)
        self.summary = RunSummary(options.command, index_faults=self._index_check.faults)
        self._parts = parts
        self._passages = PassageSync(parts.passages, parts.ledger)
        self._options = options
        self._stop = stop
        self._watch = watch
        self.progress = Progress(self.summary.counts)
        self._since: int | None = None
        self._moves_watermark = False
        self._newest: int | None = None
        self._lists_everything = False
        self._listed = ListedStories()
        self._held_before = 0
        self._fresh_proposal = FreshProposal(options)

    @property
    def watermark(self) -> int | None:
        """The newest `updated_at` of the listing; None if the run may have left out older stories."""
        return self._newest if self._moves_watermark else None

    async def prepare(self) -> None:
        """Bring the index to the ledger's last change, and determine the time from which to list."""
        parts, options = self._parts, self._options
        self._enter("bringing the index up to date")
        start_server()  # it loads its functions while this process prepares the index
        preparing = prepare_index(
            parts.index,
            parts.passages,
            parts.ledger,
            parts.version,
            fresh=options.fresh,
            refingerprint_for=options.refingerprint_for,
        )
        await finish_unless_stopped(preparing, self._stop)
        await finish_unless_stopped(self._passages.start(), self._stop)
        if not options.fresh:
            await finish_unless_stopped(self._index_check.run(), self._stop)
        watermark = await parts.ledger.do(runs.read_trusted_watermark, now_ms())
        self._since = options.since
        if options.command == "daily" and options.since is None:
            self._since = self._find_start(watermark)
        leaves_no_gap = self._since is None or (watermark is not None and self._since <= watermark)
        self._moves_watermark = leaves_no_gap and options.moves_watermark

    def _find_start(self, watermark: int | None) -> int | None:
        if watermark is not None:
            return watermark - int(self._parts.section.overlap.total_seconds() * 1000)
        if self._options.needs_watermark:
            raise Misuse("no watermark yet: run `neardup backfill` first, or give --since")
        return None

    async def collect_facts(self) -> dict[str, object]:
        """The number of stories on record, the time from which the run lists, and whether it is `fresh`."""
        self._held_before = sum((await self._parts.ledger.do(count_by_language)).values())
        return {"stories": self._held_before, "since": format_time(self._since), "fresh": self._options.fresh}

    async def work(self, run_id: int) -> bool:
        """List, read, look up, write and verify.  Returns False if `stop` was set before the listing ended."""
        parts, before = self._parts, read_stage_seconds()
        self._enter("reading")
        source, readers = await parts.open_source(self._write_checkpoint), parts.open_readers()
        texts = Texts(readers.read_to_compare)
        verifier = Verifier(parts.ledger, parts.detection, algorithm(), texts, self._count_flags)
        try:
            ended = await self._read_missing_passages(readers)
            ended = ended and await self._process(run_id, source, readers, texts, verifier)
        finally:
            await readers.aclose()
            self.summary.stages = measure_latencies(before)
        if ended:
            refuse_unreadable(self.summary, whole_listing=self._lists_everything)
        return ended

    async def _read_missing_passages(self, readers: ReaderPool) -> bool:
        """Read again what the passage index lacks, now and when it is found damaged; False if `stop` was set before."""
        reading = PassageReading.of_pool(self._passages, self._parts.ledger, readers, self._parts.section)
        self._passages.repair = reading.repair
        if not (missing := await reading.count_missing()):
            return True
        self._enter("reading passages again", missing)
        ended = await reading.run(self._stop, self._advance)
        self._enter("reading")
        return ended

    async def _process(
        self, run_id: int, source: Source, readers: ReaderPool, texts: Texts, verifier: Verifier
    ) -> bool:
        parts, options = self._parts, self._options
        quarantine = Quarantine(parts.ledger, readers, retry=options.dead_letters)
        writer = Writer(
            parts.ledger,
            None if options.fresh else parts.index,
            parts.detection,
            parts.version,
            passages=self._passages,
            index_wait=parts.index_wait,
            run_id=run_id,
            counts=self.summary.counts,
            live_facts=lambda: {
                "limited_by": describe_bottleneck(pipeline, readers.concurrency),
                "examples": self.summary.counts.examples,
            },
            checkpoint=lambda position: self._make_checkpoint(source, position),
            committed=verifier.wake,
        )
        pipeline = await self._make_pipeline(source, readers, quarantine, writer)
        with connect_gauges(pipeline, readers.concurrency):
            async with quarantine, writer, asyncio.TaskGroup() as group:
                group.create_task(verifier.run(), name="verifier")
                gauges = group.create_task(keep_gauges(parts.ledger, parts.index, parts.passages), name="gauges")
                await parts.ledger.do(removed_texts.keep_for, parts.detection.remember_removed_days, now_ms())
                if isinstance(source, Folder):
                    await self._remove_gone(source)
                ended = await pipeline.run(self._list_jobs(source))
                if ended:
                    await self._finish_candidates(writer, readers, texts)
                await self._passages.settle(self._stop)
                self._enter("verifying", await parts.ledger.do(candidates.count_pending))
                verifier.finish()
                gauges.cancel()
        if ended and not self._options.fresh:
            await verifier.match_serials()
        await parts.ledger.do(outbox.prune_changes, KEPT_CHANGES)
        await parts.ledger.do(remove_unused, parts.ledger.path)
        return ended

    async def _make_pipeline(
        self, source: Source, readers: ReaderPool, quarantine: Quarantine, writer: Writer
    ) -> Pipeline[Jobs, Outcomes, BatchLookup | None]:
        """The stages through which the listed stories go, from their pages to the ledger."""

        async def write(batch: Outcomes, looked_up: BatchLookup | None, position: int) -> None:
            keep_examples(self.summary.counts, batch.others, readers.find_location)
            await writer.write(batch, looked_up, position)
            self.progress.position, self.progress.size = position, source.size
            self._fresh_proposal.consider(self.progress, self._held_before)
            self._watch(self.progress)

        section = self._parts.section
        breaker = CircuitBreaker(quarantine.read_all, section.breaker_share, section.breaker_after)
        is_retried, reader = self._options.dead_letters, self._parts.reader
        worker = Worker(
            lambda ids: reader.do(read_known, ids), breaker, self._parts.languages, self._listed, is_retried=is_retried
        )
        return Pipeline(
            worker.admit,
            worker.work,
            Outcomes.concatenate,
            writer.look_up,
            write,
            workers=PAGES_AHEAD * section.workers,
            depth=section.queue,
            batch=section.batch,
            stop=self._stop,
            cpu_seconds=lambda: time.process_time() + readers.cpu_seconds,
        )

    async def _finish_candidates(self, writer: Writer, readers: ReaderPool, texts: Texts) -> None:
        """Find what depends on all stories: common passages, the matches that they change, and texts that returned."""
        parts, wait = self._parts, self._parts.index_wait.wait_for_answer
        if self._options.fresh:
            await readers.aclose()  # to free their memory for the build
            await self._build_index()
            await parts.ledger.do(outbox.prove_lookups)  # the sweep that is owed finds the pairs
        await writer.finish_insert()
        await wait("check", self._index_check.run)
        await wait("settle", lambda: settle_all(parts.index, self._passages, parts.ledger, parts.detection))
        await count_again(self._passages, parts.ledger, parts.detection)
        if not self._options.fresh:  # whose readers are closed, and whose pairs a sweep finds
            await wait(
                "select",
                lambda: select_again(parts.index, self._passages, parts.ledger, parts.detection, texts),
                may_take_long=True,
            )
        await find_returned(parts.ledger, self._passages, parts.detection)

    async def _remove_gone(self, folder: Folder) -> None:
        """Remove the stories whose pages are no longer in the folder, before a page that was renamed is compared."""
        ledger = self._parts.ledger
        last_change = await ledger.do(outbox.read_last_seq)
        gone = await ledger.do(stories.list_unlisted_pages, await folder.find(), last_change)
        await remove_stories(ledger, gone)
        self.summary.counts.removed = len(gone)
        if gone:
            log.info("stories were removed, because their pages are gone", stories=len(gone))

    async def _build_index(self) -> None:
        parts = self._parts
        self._enter("building the index", sum((await parts.ledger.do(count_by_language)).values()))

        await parts.index_wait.wait_for_answer(
            "build",
            lambda: rebuild(parts.index, parts.ledger, parts.version, self._advance),
            may_take_long=True,
        )

    def _enter(self, phase: Phase, size: int = 0) -> None:
        self.progress.enter(phase, size)
        self._watch(self.progress)

    def _advance(self, position: int) -> None:
        self.progress.position = position
        self._watch(self.progress)

    async def _list_jobs(self, source: Source) -> AsyncGenerator[Jobs, None]:
        """List the stories, a backfill from its checkpoint on, and keep the newest `updated_at`."""
        checkpoint = await self._parts.ledger.do(runs.read_checkpoint) if self._is_backfill else None
        self._newest = checkpoint.newest if checkpoint else None
        self.progress.resume_at(checkpoint.position if checkpoint else 0)
        has_begun = False
        async for block in source.list_blocks(since=self._since, resume=checkpoint):
            if not has_begun:  # only now is it known whether the listing of the checkpoint goes on
                await self._begin_listing(source, checkpoint)
                has_begun = True
            if not isinstance(block, BadRow):
                # A watermark in the future would hide stories that are listed later.
                times = [at for at in block.updated_at if at is not None and at <= self.summary.started_at]
                self._newest = max([self._newest or 0, *times]) if times else self._newest
            yield Jobs.of(block)
        if not has_begun:
            await self._begin_listing(source, checkpoint)
        if isinstance(source, Folder):
            source.log_guesses()

    async def _begin_listing(self, source: Source, checkpoint: Checkpoint | None) -> None:
        """Take note of the ledger's last change before the listing began, which may have been in an earlier run."""
        ledger = self._parts.ledger
        resumes = checkpoint is not None and checkpoint.position > 0 and checkpoint.listing == source.name
        self._lists_everything = self._since is None and not resumes and not self._options.dead_letters
        recorded = await ledger.do(runs.get, LISTING_BEGAN) if resumes else None
        self._listed.last_change = await ledger.do(outbox.read_last_seq) if recorded is None else int(recorded)
        if self._is_backfill:
            await ledger.do(runs.put, LISTING_BEGAN, str(self._listed.last_change))

    @property
    def _is_backfill(self) -> bool:
        return self._options.command == "backfill"

    def _make_checkpoint(self, source: Source, position: int) -> Checkpoint | None:
        """Where to resume; None to leave that as it is, while next to nothing could be read: that is read again."""
        if not self._is_backfill or is_nearly_nothing_read(self.summary.counts):
            return None
        return Checkpoint(source.name, position, self._newest)

    async def _write_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self._is_backfill:
            await self._parts.ledger.do(runs.put_checkpoint, checkpoint)

    def _count_flags(self, new_flags: NewFlags, pairs: int) -> None:
        self.summary.counts.add_flags(new_flags.items())
        self._advance(self.progress.position + (pairs if self.progress.phase == "verifying" else 0))


class WorksListing(Struct):
    """The works that `source` lists.  When it ends, the others are removed; `removed` counts them.

    No work is removed if a row describes none, because it may be meant for one on record.
    """

    source: Source
    ledger: Ledger
    removed: int = 0

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def size(self) -> int:
        return self.source.size

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All works; `since` and `resume` are ignored.  Raises Fatal if there are none."""
        listed, bad_rows = set[int](), 0
        async for block in self.source.list_blocks(since=None, resume=None):
            if isinstance(block, BadRow):
                bad_rows += 1
            else:
                listed.update(block.ids)
            yield block
        if not listed and not bad_rows:
            raise Fatal(EMPTY_LISTING)
        gone = await self.ledger.do(stories.list_unlisted_works, listed)
        if gone and bad_rows:
            log.warning("no work is removed, because some rows describe no work", rows=bad_rows, not_listed=len(gone))
        elif gone:
            await remove_stories(self.ledger, gone)
            self.removed = len(gone)


async def remove_stories(ledger: Ledger, ids: list[int]) -> None:
    """Remove stories with their flags and verdicts, in transactions of REMOVED_AT_ONCE."""
    for start in range(0, len(ids), REMOVED_AT_ONCE):
        await ledger.do(stories.erase, ids[start : start + REMOVED_AT_ONCE])
