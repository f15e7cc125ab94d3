"""One run over a listing; backfill, daily and retry runs differ in their listings."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from neardup.core.columns import Outcomes
from neardup.core.fingerprint.version import algorithm
from neardup.errors import Misuse
from neardup.ledger import candidates, now_ms, outbox, runs
from neardup.ledger.languages import stories_by_language
from neardup.pages.circuit_breaker import CircuitBreaker
from neardup.pages.fork_server import start_server
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.gauges import keep_gauges
from neardup.pipeline.index_check import IndexCheck
from neardup.pipeline.index_sync import KEEP_CHANGES, rebuild
from neardup.pipeline.passage_damage import PassageRepair
from neardup.pipeline.passage_reading import PassageReading
from neardup.pipeline.passage_sync import PassageSync
from neardup.pipeline.prepare import prepare_index, unless_stopped
from neardup.pipeline.progress import Phase, Progress, Watch
from neardup.pipeline.quarantine import Quarantine
from neardup.pipeline.run_options import FreshProposal, Options
from neardup.pipeline.run_parts import Parts
from neardup.pipeline.second_lookup import settle_all
from neardup.pipeline.stages import Pipeline
from neardup.pipeline.submitted_pages import remove_unused
from neardup.pipeline.summary import RunSummary
from neardup.pipeline.throughput import flow_gauges, limited_by
from neardup.pipeline.unreadable import keep_examples, nearly_nothing_read, refuse_unreadable
from neardup.pipeline.verifier import NewFlags, Verifier
from neardup.pipeline.worker import Jobs, Worker, known_stories
from neardup.pipeline.writer import BatchLookup, Writer
from neardup.records import BadRow, Checkpoint, Skip, StoredVersion, rfc3339
from neardup.source import Source
from neardup.telemetry.metrics import latencies, stage_seconds

PAGES_AHEAD = 2  # times as many pages are asked for as are fetched at once, so that no reader process waits


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
        self._progress = Progress(self.summary.counts)
        self._since: int | None = None
        self._moves_watermark = False
        self._newest: int | None = None
        self._lists_everything = False
        self._held_before = 0
        self._fresh_proposal = FreshProposal(options)

    @property
    def watermark(self) -> int | None:
        """The newest `updated_at` of the listing; None if the run may have left out older stories."""
        return self._newest if self._moves_watermark else None

    async def prepare(self) -> None:
        """Bring the index to the ledger's last change, and determine the time from which to list."""
        parts, options = self._parts, self._options
        start_server()  # it loads its functions while this process prepares the index
        preparing = prepare_index(
            parts.index,
            parts.passages,
            parts.ledger,
            parts.version,
            fresh=options.fresh,
            refingerprint_for=options.refingerprint_for,
        )
        await unless_stopped(preparing, self._stop)
        await unless_stopped(self._passages.start(), self._stop)
        if not options.fresh:
            await unless_stopped(self._index_check.run(), self._stop)
        watermark = await parts.ledger.do(runs.trusted_watermark, now_ms())
        self._since = options.since
        if options.command == "daily" and options.since is None:
            self._since = self._daily_since(watermark)
        leaves_no_gap = self._since is None or (watermark is not None and self._since <= watermark)
        self._moves_watermark = leaves_no_gap and options.moves_watermark

    def _daily_since(self, watermark: int | None) -> int | None:
        if watermark is not None:
            return watermark - int(self._parts.section.overlap.total_seconds() * 1000)
        if self._options.needs_watermark:
            raise Misuse("no watermark yet: run `neardup backfill` first, or give --since")
        return None

    async def facts(self) -> dict[str, object]:
        """The number of stories on record, the time from which the run lists, and whether it is `fresh`."""
        self._held_before = sum((await self._parts.ledger.do(stories_by_language)).values())
        return {"stories": self._held_before, "since": rfc3339(self._since), "fresh": self._options.fresh}

    async def work(self, run_id: int) -> bool:
        """List, read, look up, write and verify.  Returns False if `stop` was set before the listing ended."""
        parts, before = self._parts, stage_seconds()
        self._enter("reading")
        source, readers = await parts.open_source(self._write_checkpoint), parts.open_readers()
        verifier = Verifier(parts.ledger, parts.detection, algorithm(), Texts(readers.shingled), self._flagged)
        try:
            ended = await self._read_missing_passages(readers)
            ended = ended and await self._process(run_id, source, readers, verifier)
        finally:
            await readers.aclose()
            self.summary.stages = latencies(before)
        if ended:
            refuse_unreadable(self.summary, whole_listing=self._lists_everything)
        return ended

    async def _read_missing_passages(self, readers: ReaderPool) -> bool:
        """Read again what the passage index lacks, now and when it is found damaged; False if `stop` was set before."""
        reading = PassageReading.of_pool(self._passages, self._parts.ledger, readers, self._parts.section)
        self._passages.repair = PassageRepair(self._passages, reading)
        if not (missing := await reading.missing()):
            return True
        self._enter("reading passages again", missing)
        ended = await reading.run(self._stop, self._advance)
        self._enter("reading")
        return ended

    async def _process(self, run_id: int, source: Source, readers: ReaderPool, verifier: Verifier) -> bool:
        parts, section = self._parts, self._parts.section
        writer = Writer(
            parts.ledger,
            None if self._options.fresh else parts.index,
            parts.detection,
            parts.version,
            passages=self._passages,
            index_wait=parts.index_wait,
            run_id=run_id,
            counts=self.summary.counts,
            live_facts=lambda: {
                "limited_by": limited_by(pipeline, readers.concurrency),
                "examples": self.summary.counts.examples,
            },
            checkpoint=lambda position: self._checkpoint(source, position),
            committed=verifier.wake,
        )

        async def write(batch: Outcomes, looked_up: BatchLookup | None, position: int) -> None:
            keep_examples(self.summary.counts, batch.others, readers.location_of)
            await writer.write(batch, looked_up, position)
            self._progress.position, self._progress.size = position, source.size
            self._fresh_proposal.consider(self._progress, self._held_before)
            self._watch(self._progress)

        quarantine = Quarantine(parts.ledger, readers, lambda: readers.costly_stories, retry=self._options.dead_letters)
        breaker = CircuitBreaker(quarantine.read_all, section.breaker_share, section.breaker_after)
        worker = Worker(self._known, breaker, parts.languages)
        pipeline: Pipeline[Jobs, Outcomes, BatchLookup | None] = Pipeline(
            worker.admit,
            worker.work,
            Outcomes.joined,
            writer.look_up,
            write,
            workers=PAGES_AHEAD * section.workers,
            depth=section.queue,
            batch=section.batch,
            stop=self._stop,
            cpu_seconds=lambda: time.process_time() + readers.cpu_seconds,
        )
        with flow_gauges(pipeline, readers.concurrency):
            async with quarantine, writer, asyncio.TaskGroup() as group:
                group.create_task(verifier.run(), name="verifier")
                gauges = group.create_task(keep_gauges(parts.ledger, parts.index, parts.passages), name="gauges")
                ended = await pipeline.run(self._jobs(source))
                if self._options.fresh and ended:
                    await readers.aclose()  # to free their memory for the build
                    await self._build_index()
                    await parts.ledger.do(outbox.prove_lookups)  # the sweep that is owed finds the pairs
                if ended:
                    await writer.finish_insert()
                    await parts.index_wait.until_answered("check", self._index_check.run)
                    await parts.index_wait.until_answered(
                        "settle", lambda: settle_all(parts.index, self._passages, parts.ledger, parts.detection)
                    )
                await writer.recheck_passages()
                await self._passages.settle(self._stop)
                self._enter("verifying", await parts.ledger.do(candidates.pending_count))
                verifier.finish()
                gauges.cancel()
        await parts.ledger.do(outbox.prune_changes, KEEP_CHANGES)
        await parts.ledger.do(remove_unused, parts.ledger.path)
        return ended

    async def _build_index(self) -> None:
        parts = self._parts
        self._enter("building the index", sum((await parts.ledger.do(stories_by_language)).values()))

        async def build() -> None:
            await rebuild(parts.index, parts.ledger, parts.version, self._advance)

        await parts.index_wait.until_answered("build", build, may_take_long=True)

    def _enter(self, phase: Phase, size: int = 0) -> None:
        self._progress.enter(phase, size)
        self._watch(self._progress)

    def _advance(self, position: int) -> None:
        self._progress.position = position
        self._watch(self._progress)

    async def _jobs(self, source: Source) -> AsyncGenerator[Jobs, None]:
        """List the stories, a backfill from its checkpoint on, and keep the newest `updated_at`."""
        checkpoint = await self._parts.ledger.do(runs.checkpoint) if self._is_backfill else None
        self._newest = checkpoint.newest if checkpoint else None
        resumes = checkpoint is not None and checkpoint.position > 0
        self._lists_everything = self._since is None and not resumes and not self._options.dead_letters
        async for block in source.blocks(since=self._since, resume=checkpoint):
            if not isinstance(block, BadRow):
                # A watermark in the future would hide stories that are listed later.
                times = [at for at in block.updated_at if at is not None and at <= self.summary.started_at]
                self._newest = max([self._newest or 0, *times]) if times else self._newest
            yield Jobs.of(block)

    async def _known(self, ids: Sequence[int]) -> Mapping[int, StoredVersion | Skip]:
        return await self._parts.reader.do(known_stories, ids)

    @property
    def _is_backfill(self) -> bool:
        return self._options.command == "backfill"

    def _checkpoint(self, source: Source, position: int) -> Checkpoint | None:
        """Where to resume; None to leave that as it is, while next to nothing could be read: that is read again."""
        if not self._is_backfill or nearly_nothing_read(self.summary.counts):
            return None
        return Checkpoint(source.name, position, self._newest)

    async def _write_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self._is_backfill:
            await self._parts.ledger.do(runs.put_checkpoint, checkpoint)

    def _flagged(self, new_flags: NewFlags, pairs: int) -> None:
        self.summary.counts.add_flags(new_flags.items())
        self._advance(self._progress.position + (pairs if self._progress.phase == "verifying" else 0))
