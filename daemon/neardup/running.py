"""Composes a run and a sweep with what follows them: cases, export, scrub, gauges and webhook.

The export is imported only if [export] names a file.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from neardup import __version__
from neardup.app import App, open_readers
from neardup.config import Config
from neardup.ledger import Ledger

if TYPE_CHECKING:
    from neardup.ledger.dead_letters import DeadLetterFilter
    from neardup.pipeline.hooks import Hook
    from neardup.pipeline.progress import Watch
    from neardup.pipeline.run_parts import CheckpointWriter
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary
    from neardup.source import Source


async def _open_dead_letters(ledger: Ledger, choice: "DeadLetterFilter") -> "Source":
    from neardup.ledger import dead_letters
    from neardup.source.listings import DeadLetters

    size = sum((await ledger.do(dead_letters.counted, choice)).values())
    return DeadLetters(lambda after: ledger.do(dead_letters.retriable, choice, after), size)


async def run_once(
    app: App,
    command: str,
    stop: asyncio.Event,
    watch: "Watch | None" = None,
    *,
    since: int | None = None,
    refingerprint: bool = False,
    fresh: bool = False,
    dead_letters: "DeadLetterFilter | None" = None,
    listing: "Source | None" = None,
    hooks: "Sequence[Hook]" = (),
) -> "RunSummary":
    """Run `backfill`, `daily`, `retry` or `reference` until its listing ends or `stop` is set; then hooks.

    `watch` is called with the progress after each batch.  If `dead_letters` are chosen, their stories are listed;
    otherwise those of `listing`, or of [source].
    `hooks` are called before the gauges are set.  `since`, `refingerprint` and `fresh` are as in `run_options`.  Raises
    as `Run` and `carry_out` do.
    """
    from neardup.ledger import works
    from neardup.moderation.webhook import notify_webhook
    from neardup.pipeline import script_health
    from neardup.pipeline.gauges import refresh_gauges
    from neardup.pipeline.hooks import Hook
    from neardup.pipeline.progress import ignore_progress
    from neardup.pipeline.run import Run
    from neardup.pipeline.run_lifecycle import carry_out
    from neardup.pipeline.run_options import Options
    from neardup.pipeline.run_parts import Parts
    from neardup.pipeline.scrub import scrub
    from neardup.source.listings import open_source, refuse_scan

    config = app.config
    if listing is None and dead_letters is None:
        refuse_scan(config)  # before its index is built

    async def open_listing(checkpoint: "CheckpointWriter") -> "Source":
        if dead_letters is not None:
            return await _open_dead_letters(app.ledger, dead_letters)
        return listing or open_source(config, checkpoint)

    async def report_texts(_: "Summary") -> None:
        job.summary.unusual_texts = await script_health.report(app.ledger)

    async def scrub_index(_: "Summary") -> None:
        await scrub(app.index, app.passages, app.ledger, config.detection, job.summary.index_faults)

    async def refresh(_: "Summary") -> None:
        await refresh_gauges(app.ledger, app.index, app.passages)

    async def notify(summary: "Summary") -> None:
        flagged = await app.ledger.do(works.open_flags, summary.started_at)
        facts = summary.as_dict() | {"flagged_by_catalogue": flagged}
        await notify_webhook(config.export, summary.command, summary.status, facts)

    options = Options(
        command,
        since=since,
        needs_watermark=config.source.kind == "athena",
        refingerprint_for=json.dumps(asdict(config.extract), ensure_ascii=False, separators=(",", ":"))
        if refingerprint
        else None,
        fresh=fresh,
        dead_letters=dead_letters is not None,
        moves_watermark=dead_letters is None and listing is None,
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
        job := Run(parts, options, stop, watch or ignore_progress),
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


async def sweep(config: Config, ledger: Ledger, stop: asyncio.Event, watch: "Watch | None" = None) -> "SweepSummary":
    """Nominate and verify the pairs among all stories of the ledger until done or `stop` is set; then export.

    `watch` is called with the progress, in stories.  Raises as `Sweep` and `carry_out` do.
    """
    from neardup.core.fingerprint import version as fingerprint_version
    from neardup.pipeline.progress import ignore_progress
    from neardup.pipeline.run_lifecycle import carry_out
    from neardup.pipeline.sweep import Sweep

    version = fingerprint_version.version(config.registry)
    job = Sweep(
        ledger,
        config.detection,
        version,
        section=config.run,
        open_readers=lambda: open_readers(config),
        stop=stop,
        watch=watch or ignore_progress,
    )
    return await carry_out(
        job,
        ledger,
        stop,
        release=__version__,
        shutdown_seconds=config.run.shutdown_seconds,
        hooks=after_run(config, ledger, stop),
    )


def after_run(config: Config, ledger: Ledger, stop: asyncio.Event) -> "list[Hook]":
    """The hooks that bring the cases up to date and write the file of [export].

    Once `stop` is set, the export leaves out passages, which take time.
    """
    from neardup.ledger import cases
    from neardup.pipeline.hooks import Hook

    async def refresh_cases(_: "Summary") -> None:
        await ledger.do(cases.refresh)

    refreshing = Hook("cases", refresh_cases)
    if config.export.path is None:
        return [refreshing]
    from neardup.moderation.export.write import check_format, export_after_run

    check_format(config.export.path_format)  # before hours of work, not after

    async def export(_: "Summary") -> None:
        await export_after_run(config, lambda: open_readers(config), passages=not stop.is_set())

    return [refreshing, Hook("export", export, vital=True)]
