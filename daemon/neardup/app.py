"""Composes the parts of neardup: ledger, index, source and reader pool, and the commands that use them.

What loads a large library imports it where it is used: `status` starts without compiler, S3 and Redis.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass

from neardup import __version__
from neardup.config import Config, Detection
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.html import Extraction
from neardup.index import backends
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, cases, connect, dead_letters, files, languages, read, works
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.moderation.export.write import check_format, export_after_run
from neardup.moderation.webhook import notify_webhook
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.store import WorkPages, open_store
from neardup.pipeline import script_health
from neardup.pipeline.gauges import refresh_gauges
from neardup.pipeline.hooks import Hook
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.passage_sync import open_passages
from neardup.pipeline.progress import Watch, ignore_progress
from neardup.pipeline.run import Run
from neardup.pipeline.run_lifecycle import carry_out
from neardup.pipeline.run_options import Options
from neardup.pipeline.run_parts import CheckpointWriter, Parts
from neardup.pipeline.scrub import scrub
from neardup.pipeline.summary import RunSummary, Summary, SweepSummary
from neardup.pipeline.sweep import Sweep
from neardup.query.compare import Comparer
from neardup.source import Source
from neardup.source.configured import open_source
from neardup.source.dead_letters import DeadLetters
from neardup.telemetry.metrics import create_series


@dataclass(frozen=True, slots=True)
class App:
    """The open parts that commands share; `reader` is a second, read-only connection to the ledger."""

    config: Config
    ledger: Ledger
    reader: Ledger
    index: Index
    passages: PassageIndex
    index_wait: IndexWait
    version: str


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    """Open ledger and index.  Raises Transient if Redis does not answer, and Fatal for other failures."""
    connect(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger, closing(Ledger(config.ledger.path, read)) as reader:
        await ledger.do(languages.register, config.registry)
        create_series(config.registry)
        index = await open_index(config)
        try:
            with closing(await open_passages(ledger)) as passages:
                version = fingerprint_version.version(config.registry)
                yield App(config, ledger, reader, index, passages, IndexWait(ledger), version)
        finally:
            await index.close()


@contextmanager
def open_ledger(config: Config) -> Iterator[Ledger]:
    """Open an existing ledger.  Raises Fatal if there is none."""
    read(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger:
        yield ledger


async def open_index(config: Config) -> Index:
    """Open the index that [index] configures."""
    bandings = config.detection.bandings(config.registry)
    return await backends.open_index(config.index, config.ledger.path, bandings, config.registry.codes)


async def _open_dead_letters(ledger: Ledger, choice: DeadLetterFilter) -> Source:
    size = sum((await ledger.do(dead_letters.counted, choice)).values())
    return DeadLetters(lambda after: ledger.do(dead_letters.retriable, choice, after), size)


def open_readers(config: Config) -> ReaderPool:
    """A pool of reader processes, which start when first needed.  Raises Fatal for a store that does not exist."""
    open_store(config.content)
    submitted, works = files.submitted_folder(config.ledger.path), None
    if (reference := config.reference) is not None:
        open_store(reference.content)
        works = WorkPages(reference.content, Extraction(reference.extract.body, reference.extract.strip))
    return ReaderPool(config.content, extraction(config), config.run.workers, submitted, works)


def extraction(config: Config) -> Extraction:
    return Extraction(config.extract.body, config.extract.strip)


def comparer(config: Config | None) -> Comparer:
    """The parts of `compare`; without a configuration it compares files only, each with its whole text."""
    if config is None:
        return Comparer(None, None, Extraction(), Detection())
    return Comparer(config.ledger.path, lambda: open_readers(config), extraction(config), config.detection)


async def run_once(
    app: App,
    command: str,
    stop: asyncio.Event,
    watch: Watch = ignore_progress,
    *,
    since: int | None = None,
    refingerprint: bool = False,
    fresh: bool = False,
    dead_letters: DeadLetterFilter | None = None,
    listing: Source | None = None,
    hooks: Sequence[Hook] = (),
) -> RunSummary:
    """Run `backfill`, `daily`, `retry`, `scan` or `reference` until its listing ends or `stop` is set; then hooks.

    `watch` is called with the progress after each batch.  If `dead_letters` are chosen, their stories are listed;
    otherwise those of `listing`, or of [source].
    `hooks` are called before the gauges are set.  `since`, `refingerprint` and `fresh` are as in `run_options`.  Raises
    as `Run` and `carry_out` do.
    """
    config = app.config

    async def open_listing(checkpoint: CheckpointWriter) -> Source:
        if dead_letters is not None:
            return await _open_dead_letters(app.ledger, dead_letters)
        return listing or open_source(config, checkpoint)

    async def report_texts(_: Summary) -> None:
        job.summary.unusual_texts = await script_health.report(app.ledger)

    async def scrub_index(_: Summary) -> None:
        await scrub(app.index, app.passages, app.ledger, config.detection, job.summary.index_faults)

    async def refresh(_: Summary) -> None:
        await refresh_gauges(app.ledger, app.index, app.passages)

    async def notify(summary: Summary) -> None:
        flagged = await app.ledger.do(works.open_flags, summary.started_at)
        facts = summary.as_dict() | {"flagged_by_catalogue": flagged}
        await notify_webhook(config.export, summary.command, summary.status, facts)

    options = Options(
        command,
        since=since,
        needs_watermark=config.source.kind == "athena",
        refingerprint_for=config.extract.model_dump_json() if refingerprint else None,
        fresh=fresh,
        dead_letters=dead_letters is not None,
        moves_watermark=dead_letters is None and listing is None,
        refuses_unreadable=command != "scan",
    )
    parts = Parts(
        ledger=app.ledger,
        reader=app.reader,
        index=app.index,
        passages=app.passages,
        index_wait=app.index_wait,
        version=app.version,
        section=config.run,
        detection=config.detection,
        languages=config.registry,
        open_source=open_listing,
        open_readers=lambda: open_readers(config),
    )
    webhooks = [Hook("webhook", notify)] if listing is None else []
    return await carry_out(
        job := Run(parts, options, stop, watch),
        app.ledger,
        stop,
        release=__version__,
        shutdown_seconds=config.run.shutdown_seconds,
        hooks=[
            *after_run(config, app.ledger, stop),
            Hook("script health", report_texts),
            *([Hook("scrub", scrub_index)] if command == "daily" else []),
            *hooks,
            Hook("gauges", refresh),
            *webhooks,
        ],
    )


async def sweep(
    config: Config, ledger: Ledger, stop: asyncio.Event, watch: Watch = ignore_progress, first_new: int | None = None
) -> SweepSummary:
    """Nominate and verify the pairs among all stories of the ledger until done or `stop` is set; then export.

    `watch` is called with the progress, in stories.  `first_new` is as in `Sweep`, and raises as it and `carry_out` do.
    """
    version = fingerprint_version.version(config.registry)
    job = Sweep(
        ledger,
        config.detection,
        version,
        section=config.run,
        open_readers=lambda: open_readers(config),
        stop=stop,
        watch=watch,
        first_new=first_new,
    )
    return await carry_out(
        job,
        ledger,
        stop,
        release=__version__,
        shutdown_seconds=config.run.shutdown_seconds,
        hooks=after_run(config, ledger, stop),
    )


def after_run(config: Config, ledger: Ledger, stop: asyncio.Event) -> list[Hook]:
    """The hooks that bring the cases up to date and write the file of [export].

    Once `stop` is set, the export leaves out passages, which take time.
    """

    async def refresh_cases(_: Summary) -> None:
        await ledger.do(cases.refresh)

    refreshing = Hook("cases", refresh_cases)
    if config.export.path is None:
        return [refreshing]
    check_format(config.export.path_format)  # before hours of work, not after

    async def export(_: Summary) -> None:
        await export_after_run(config, lambda: open_readers(config), passages=not stop.is_set())

    return [refreshing, Hook("export", export, vital=True)]
