"""Composes the parts of neardup: ledger, index, source and reader pool, and the commands that use them.

What loads a large library is imported where it is used: `status` starts without compiler, S3 and Redis.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from neardup import __version__
from neardup.config import Config, Detection
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.html import Extraction
from neardup.errors import Misuse
from neardup.extras import needs
from neardup.index import backends
from neardup.index.protocol import Index
from neardup.ledger import Ledger, connect, dead_letters, files, languages, read
from neardup.ledger.dead_letters import DeadLetterFilter
from neardup.moderation.export.write import check_format, export_after_run
from neardup.moderation.webhook import notify_webhook
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.store import open_store
from neardup.pipeline.gauges import refresh_gauges
from neardup.pipeline.hooks import Hook
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.progress import Watch, ignore_progress
from neardup.pipeline.run_lifecycle import carry_out
from neardup.pipeline.run_options import Options
from neardup.pipeline.summary import RunSummary, Summary, SweepSummary
from neardup.query.compare import Comparer
from neardup.records import Checkpoint
from neardup.source import Source
from neardup.source.dead_letters import DeadLetters
from neardup.source.manifest import Manifest
from neardup.telemetry.metrics import create_series

if TYPE_CHECKING:
    from neardup.index.passages.index import PassageIndex
    from neardup.pipeline.run_parts import CheckpointWriter


@dataclass(frozen=True, slots=True)
class App:
    """The open parts that commands share; `reader` is a second, read-only connection to the ledger."""

    config: Config
    ledger: Ledger
    reader: Ledger
    index: Index
    passages: "PassageIndex"
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
            from neardup.pipeline.passage_sync import open_passages  # noqa: PLC0415 - loads numba

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


def open_source(config: Config, checkpoint: Callable[[Checkpoint], Awaitable[None]]) -> Source:
    """The source that [source] configures; a resumable listing calls `checkpoint` with its first checkpoint."""
    if config.source.kind == "athena":
        with needs("aws", 'source.kind = "athena"'):
            from neardup.s3_objects import open_range_reader  # noqa: PLC0415 - loads aioboto3
            from neardup.source.athena import Athena  # noqa: PLC0415 - loads aioboto3

        content = config.content
        opener = partial(open_range_reader, content=content)
        return Athena(config.source, content.region, config.registry, opener, checkpoint, key=content.key)
    if config.source.manifest is None:
        raise Misuse("the documents of a scan are not listed again: run `neardup scan`")
    return Manifest(config.source.manifest, config.registry, config.content.key)


async def _open_dead_letters(ledger: Ledger, choice: DeadLetterFilter) -> Source:
    size = sum((await ledger.do(dead_letters.counted, choice)).values())
    return DeadLetters(lambda after: ledger.do(dead_letters.retriable, choice, after), size)


def open_readers(config: Config) -> ReaderPool:
    """A pool of reader processes, which start when first needed.  Raises Fatal for a store that does not exist."""
    open_store(config.content)
    submitted = files.submitted_folder(config.ledger.path)
    return ReaderPool(config.content, extraction(config), config.run.workers, submitted)


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
) -> RunSummary:
    """Run `backfill`, `daily`, `retry` or `scan` until its listing ends or `stop` is set; then call the hooks.

    `watch` is called with the progress after each batch.  If `dead_letters` are chosen, their stories are listed;
    otherwise those of `listing`, or of [source].
    `since`, `refingerprint` and `fresh` are as in `pipeline.run.Options`.  Raises as `Run` and `carry_out` do.
    """
    await asyncio.to_thread(import_module, "neardup.pipeline.run")  # loads numba: the event loop must not wait for it
    from neardup.pipeline.run import Run  # noqa: PLC0415 - likewise
    from neardup.pipeline.run_parts import Parts  # noqa: PLC0415 - likewise

    config = app.config

    async def open_listing(checkpoint: "CheckpointWriter") -> Source:
        if dead_letters is not None:
            return await _open_dead_letters(app.ledger, dead_letters)
        return listing or open_source(config, checkpoint)

    async def refresh(_: Summary) -> None:
        await refresh_gauges(app.ledger, app.index, app.passages)

    async def notify(summary: Summary) -> None:
        await notify_webhook(config.export, summary.command, summary.status, summary.as_dict())

    options = Options(
        command,
        since=since,
        needs_watermark=config.source.kind == "athena",
        refingerprint_for=config.extract.model_dump_json() if refingerprint else None,
        fresh=fresh,
        dead_letters=dead_letters is not None,
        refuses_unreadable=listing is None,
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
        open_source=open_listing,
        open_readers=lambda: open_readers(config),
    )
    return await carry_out(
        Run(parts, options, stop, watch),
        app.ledger,
        stop,
        release=__version__,
        shutdown_seconds=config.run.shutdown_seconds,
        hooks=[*_exports(config, stop), Hook("gauges", refresh), Hook("webhook", notify)],
    )


async def sweep(
    config: Config, ledger: Ledger, stop: asyncio.Event, watch: Watch = ignore_progress, first_new: int | None = None
) -> SweepSummary:
    """Nominate and verify the pairs among all stories of the ledger until done or `stop` is set; then export.

    `watch` is called with the progress, in stories.  `first_new` is as in `Sweep`, and raises as it and `carry_out` do.
    """
    await asyncio.to_thread(import_module, "neardup.pipeline.sweep")  # loads numba
    from neardup.pipeline.sweep import Sweep  # noqa: PLC0415 - likewise

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
        hooks=_exports(config, stop),
    )


def _exports(config: Config, stop: asyncio.Event) -> list[Hook]:
    """The hook that writes the file of [export]; once `stop` is set it leaves out passages, which take time."""
    if config.export.path is None:
        return []
    check_format(config.export.path_format)  # before hours of work, not after

    async def export(_: Summary) -> None:
        await export_after_run(config, lambda: open_readers(config), passages=not stop.is_set())

    return [Hook("export", export, vital=True)]
