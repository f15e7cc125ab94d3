"""One run, from its listing to its watermark.  Backfill and daily are the same run over another listing."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from structlog.contextvars import bind_contextvars

from neardup.app import App, open_letters, open_readers, open_source
from neardup.config import Config
from neardup.core.fingerprint.version import algorithm
from neardup.errors import Misuse, NeardupError
from neardup.ledger import changes, now_ms, runs, stories
from neardup.ledger.dead_letters import Choice
from neardup.ledger.lock import only_one
from neardup.moderation.export.write import check_format, export_after_run
from neardup.moderation.webhook import tell
from neardup.ops.gauges import keep_gauges, refresh_gauges
from neardup.pages.circuit_breaker import Breaker
from neardup.pages.quarantine import Quarantine
from neardup.pages.text_cache import Texts
from neardup.pipeline.batch_loader import Coalesced
from neardup.pipeline.grace_period import drained
from neardup.pipeline.index_sync import KEEP_CHANGES, rebuild
from neardup.pipeline.index_wait import wait_for_index
from neardup.pipeline.prepare import get_ready
from neardup.pipeline.stages import Pipeline
from neardup.pipeline.summary import Counts, Summary
from neardup.pipeline.throughput import limited_by, unwatch_flow, watch_flow
from neardup.pipeline.verifier import News, Verifier
from neardup.pipeline.worker import Worker
from neardup.pipeline.writer import LookedUp, Writer
from neardup.records import Checkpoint, Known, Listed, Outcome, Story
from neardup.source import Source
from neardup.telemetry.metrics import RUN_FAILURES, RUNNING, latencies, stage_seconds

log = structlog.get_logger()


@dataclass(slots=True)
class Progress:
    """How far a run is: its counts, and the bytes of the listing that it has come through."""

    counts: Counts = field(default_factory=Counts)
    position: int = 0
    size: int = 0


Watch = Callable[[Progress], None]


async def run_once(
    app: App,
    command: str,
    stop: asyncio.Event,
    watch: Watch = lambda progress: None,
    *,
    since: int | None = None,
    refingerprint: bool = False,
    fresh: bool = False,
    letters: Choice | None = None,
) -> Summary:
    """Run `backfill`, `daily` or `retry` until its listing ends or `stop` is set.

    `watch` is told of the progress after each batch.  `since` (milliseconds) overrides a daily
    run's watermark.  With `letters` the stories of such dead letters are listed.  A `fresh` run looks
    nothing up, and builds the index from the ledger at its end: a sweep, owed from then on, finds the pairs.
    Raises Transient where the ledger is in use or the index away at start, Misuse for a daily Athena run
    without a watermark, Stopped where `stop` came first, StoreDown, and Fatal for what somebody has to mend.
    From its start on, log lines name the run.
    """
    if app.config.export.path is not None:
        check_format(app.config.export.path_format)  # before hours of work
    with only_one(app.config.ledger.path, command):
        await get_ready(app, stop, refingerprint=refingerprint, fresh=fresh)
        mark = await app.ledger.do(runs.listed_until, now_ms())
        if command == "daily" and since is None:
            since = _looking_back(app.config, mark)
        covers = letters is None and (since is None or (mark is not None and since <= mark))
        run_id = await app.ledger.do(runs.begin, command)
        bind_contextvars(run=run_id)
        RUNNING.labels(command).set(1)
        run = _Run(app, command, run_id, stop, watch, fresh=fresh, letters=letters)
        try:
            summary = await run.go(since, moves_watermark=covers)
        except BaseException as error:  # noqa: BLE001 - put on record and raised again
            RUN_FAILURES.labels(command).inc()
            cause = _cause(error)
            why = repr(cause)
            if isinstance(cause, NeardupError):
                cause.run, why = run_id, str(cause)
            with suppress(NeardupError):  # it may be the ledger that failed; then the next run marks this one crashed
                await app.ledger.do(runs.finish, run_id, "failed", counts=run.counts.as_dict(), error=why)
            raise cause from None
        finally:
            RUNNING.labels(command).set(0)
            unwatch_flow()
        return summary


def _looking_back(config: Config, watermark: int | None) -> int | None:
    if watermark is not None:
        return watermark - int(config.run.overlap.total_seconds() * 1000)
    if config.source.kind == "athena":
        raise Misuse("no watermark yet: run `neardup backfill` first, or give --since")
    return None


def _cause(error: BaseException) -> BaseException:
    """The error that ended the stages; the others were cancelled for it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Run:
    """The wiring of one run."""

    def __init__(
        self,
        app: App,
        command: str,
        run_id: int,
        stop: asyncio.Event,
        watch: Watch,
        *,
        fresh: bool,
        letters: Choice | None,
    ) -> None:
        self._app = app
        self._fresh = fresh
        self._letters = letters
        self._command = command
        self._run_id = run_id
        self._stop = stop
        self._watch = watch
        self._progress = Progress()
        self._started_at = now_ms()
        self._newest: int | None = None
        self._stages = stage_seconds()
        self.counts = self._progress.counts

    async def go(self, since: int | None, *, moves_watermark: bool) -> Summary:
        """List, process, verify and export; then close the run's record."""
        began = time.perf_counter()
        ended = await drained(self._process(since), self._stop, self._app.config.run.shutdown_seconds)
        return await self._finish(time.perf_counter() - began, ended, moves_watermark=moves_watermark)

    async def _process(self, since: int | None) -> bool:
        app, config = self._app, self._app.config
        source = await open_letters(app, self._letters) if self._letters else open_source(config, self._began)
        readers = open_readers(config)
        verifier = Verifier(app.ledger, config.detection, algorithm(), Texts(readers.shingled), self._flagged)
        writer = Writer(
            app.ledger,
            None if self._fresh else app.index,
            config.detection,
            app.version,
            run_id=self._run_id,
            counts=self.counts,
            standing=lambda: {"limited_by": limited_by(pipeline, readers.concurrency)},
            checkpoint=lambda position: self._checkpoint(source, position),
            committed=verifier.wake,
        )

        async def write(batch: Sequence[Outcome], looked: LookedUp | None, resume: int) -> None:
            await writer.write(batch, looked, resume)
            self._progress.position, self._progress.size = resume, source.size
            self._watch(self._progress)

        held = Quarantine(app.ledger, readers.read, config.run.workers, again=self._letters is not None)
        worker = Worker(Coalesced(self._known), Breaker(held.read, config.run.breaker_share, config.run.breaker_after))
        pipeline: Pipeline[Listed, Outcome, LookedUp | None] = Pipeline(
            worker.process,
            writer.look_up,
            write,
            workers=config.run.workers,
            depth=config.run.queue,
            batch=config.run.batch,
            stop=self._stop,
            cpu_seconds=lambda: time.process_time() + readers.cpu_seconds,
        )
        watch_flow(pipeline, readers.concurrency)
        try:
            async with held, writer, asyncio.TaskGroup() as group:
                group.create_task(verifier.run(), name="verifier")
                group.create_task(keep_gauges(app, over := asyncio.Event()), name="gauges")
                ended = await pipeline.run(self._noting_times(source, since))
                if self._fresh and ended:
                    readers.close()  # their memory is wanted
                    await wait_for_index(app.ledger, "build", lambda: rebuild(app.index, app.ledger, app.version))
                verifier.finish()
                over.set()
        finally:
            readers.close()
        return ended

    async def _noting_times(self, source: Source, since: int | None) -> AsyncIterator[Listed]:
        resume = await self._app.ledger.do(runs.checkpoint) if self._command == "backfill" else None
        self._newest = resume.newest if resume else None
        async for story in source.stories(since=since, resume=resume):
            # A story dated in the future must not hide those that are listed late.
            if isinstance(story, Story) and story.updated_at is not None and story.updated_at <= self._started_at:
                self._newest = max(self._newest or 0, story.updated_at)
            yield story

    async def _known(self, ids: Sequence[int]) -> dict[int, Known]:
        return await self._app.reader.do(stories.known_many, ids)

    def _checkpoint(self, source: Source, position: int) -> Checkpoint | None:
        return Checkpoint(source.name, position, self._newest) if self._command == "backfill" else None

    async def _began(self, checkpoint: Checkpoint) -> None:
        if self._command == "backfill":
            await self._app.ledger.do(runs.put_checkpoint, checkpoint)

    def _flagged(self, news: News) -> None:
        self.counts.add_flags(news.items())
        self._watch(self._progress)

    async def _finish(self, working_seconds: float, ended: bool, *, moves_watermark: bool) -> Summary:
        status = "done" if ended else "stopped"
        mark = self._newest if moves_watermark else None
        await export_after_run(self._app.config, passages=not self._stop.is_set())
        counts = self.counts.as_dict() | {"stages": latencies(self._stages)}
        await self._app.ledger.do(runs.finish, self._run_id, status, counts=counts, watermark=mark)
        await self._app.ledger.do(changes.prune, KEEP_CHANGES)
        if not self._stop.is_set():  # or there is no time to wait for an index that does not answer
            with suppress(NeardupError):  # the run is done
                await refresh_gauges(self._app)
        seconds = (now_ms() - self._started_at) / 1000
        summary = Summary(self._command, status, self.counts, self._started_at, seconds, working_seconds)
        if not self._stop.is_set():
            await tell(self._app.config, self._command, status, summary.as_dict())
        return summary
