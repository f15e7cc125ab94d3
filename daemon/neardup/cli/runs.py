"""The commands that list, fingerprint and flag: `daily`, `backfill`, `sweep`."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from neardup.cli import console
from neardup.cli.base import command, json_option, parse_time_option
from neardup.cli.event_loop import run_async

if TYPE_CHECKING:
    import asyncio
    import sqlite3

    from neardup.app import App
    from neardup.config import Config
    from neardup.pipeline.hooks import Hook
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary


@partial(command, reads_pages=True)
@click.option(
    "--since", metavar="TIME", help="List the stories updated since this RFC 3339 time, instead of the watermark."
)
@json_option
def daily(config: "Config", since: str | None, as_json: bool) -> None:
    """Run over the stories updated since the watermark."""
    run_and_print(config, "daily", as_json, since=parse_time_option("--since", since))


@partial(command, reads_pages=True)
@click.option("--refingerprint", is_flag=True, help="Delete every fingerprint first and make them again.")
@click.option("--fresh", is_flag=True, help="Build the index at the end, then sweep; the fastest first backfill.")
@json_option
def backfill(config: "Config", refingerprint: bool, fresh: bool, as_json: bool) -> None:
    """Run over every story; an interrupted backfill resumes."""
    run_and_print(config, "backfill", as_json, refingerprint=refingerprint, fresh=fresh)


def run_and_print(config: "Config", name: str, as_json: bool, **options: Any) -> None:
    """Do one run, with the options of `run_once`, and print its summary and its new flags."""
    from neardup.app import open_app
    from neardup.cli import printing
    from neardup.ledger import runs
    from neardup.running import run_once
    from neardup.running import sweep as sweep_ledger
    from neardup.telemetry.run_metrics import serve_metrics

    async def do_run(stop: "asyncio.Event") -> "tuple[RunSummary, list[dict[str, Any]]]":
        async with open_app(config) as app:
            serve_metrics(config.metrics.listen, name)
            with console.show_progress(name) as watch:
                hooks = self_checks(app) if name == "daily" else []
                summary = await run_once(app, name, stop, watch, hooks=hooks, **options)
            if name == "backfill" and summary.status == "done" and await app.ledger.do(runs.owes_sweep):
                with console.show_progress("sweep") as watch:
                    swept = await sweep_ledger(config, app.ledger, stop, watch)
                summary.counts.flagged.update(swept.flagged)
                summary.warnings.update(swept.warnings)
                summary.seconds += swept.seconds
                summary.status = swept.status
            return summary, await app.ledger.do(
                _flagged_since, summary.started_at, same_author=config.detection.same_author == "keep"
            )

    summary, new = run_async(do_run, finishes_queued_work=True)
    if as_json:
        click.echo(json.dumps({"status": summary.status, **summary.as_dict()}, ensure_ascii=False))
        return
    printing.show_run(summary)
    _show_flags(config, new, summary, summary.counts.flagged.total())


@command
@json_option
def sweep(config: "Config", as_json: bool) -> None:
    """Flag the pairs among fingerprinted stories; an interrupted sweep resumes."""
    from neardup.app import open_ledger
    from neardup.cli import printing
    from neardup.running import sweep as sweep_ledger
    from neardup.telemetry.run_metrics import serve_metrics

    async def do_sweep(stop: "asyncio.Event") -> "tuple[SweepSummary, list[dict[str, Any]]]":
        with open_ledger(config) as ledger:
            serve_metrics(config.metrics.listen, "sweep")
            with console.show_progress("sweep") as watch:
                swept = await sweep_ledger(config, ledger, stop, watch)
            return swept, await ledger.do(
                _flagged_since, swept.started_at, same_author=config.detection.same_author == "keep"
            )

    swept, new = run_async(do_sweep, finishes_queued_work=True)
    if as_json:
        click.echo(json.dumps({"status": swept.status, **swept.as_dict()}, ensure_ascii=False))
        return
    printing.show_sweep(swept)
    _show_flags(config, new, swept, swept.flagged.total())


def self_checks(app: "App") -> "list[Hook]":
    """The hooks by which a daily run measures the index."""
    from neardup.insights.self_checks import canaries

    if not app.config.run.canaries:
        return []
    return [canaries.hook(app)]


def _show_flags(config: "Config", new: list[dict[str, Any]], summary: "Summary", total: int) -> None:
    from neardup.cli import printing

    printing.show_flags(new, total)
    if config.export.path and "export" not in summary.warnings:
        click.echo(f"\nOpen flags: {config.export.path}")


def _flagged_since(db: "sqlite3.Connection", since: int, *, same_author: bool) -> list[dict[str, Any]]:
    from neardup.cli import printing
    from neardup.ledger import clusters, flags, snapshot
    from neardup.ledger.selection import Selection
    from neardup.moderation.export.pairs import export_row

    with snapshot(db):
        cluster_of = clusters.by_story(db)
        new = Selection(since=since, same_author=same_author)
        return [export_row(row, cluster_of) for row in flags.select(db, new, limit=printing.SHOWN_FLAGS)]
