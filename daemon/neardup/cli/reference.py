"""The command `reference`, with its own commands `sync`, `list` and `remove`."""

import json
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.reference import Synced


@click.group()
def reference() -> None:
    """List the works to protect, show their catalogues, or remove one."""


@command
@json_option
def sync(config: "Config", *, as_json: bool) -> None:
    """List the works of [reference] again: add and update them, and remove those that are gone."""
    from neardup import reference as works_to_protect
    from neardup.app import open_app
    from neardup.cli.printing import by_reason

    async def do_sync(stop: "asyncio.Event") -> "Synced":
        async with open_app(config) as app:
            with console.show_progress("reference sync") as watch:
                return await works_to_protect.sync(app, stop, watch)

    synced = run_async(do_sync, finishes_queued_work=True)
    counts = {"added": synced.added, "updated": synced.updated, "removed": synced.removed}
    if as_json:
        facts = {"status": synced.summary.status, **synced.summary.as_dict(), **counts}
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    run = synced.summary.counts
    changes = ", ".join(f"{n:,} {what}" for what, n in counts.items())
    others = by_reason(run.skipped + run.dead_lettered)
    click.echo(
        f"{synced.summary.status}: {run.listed:,} works listed: {changes}; not fingerprinted: {others};"
        f" pairs flagged: {by_reason(run.flagged)}"
    )


@command
@json_option
def list_(config: "Config", *, as_json: bool) -> None:
    """Show the catalogues on record, with their licences, and how many works and open flags each has."""
    from rich.table import Table

    from neardup.cli.printing import out
    from neardup.ledger import read, translate_errors, works

    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path):
        found = works.catalogues(db)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], ensure_ascii=False))
        return
    if not found:
        out.print("No catalogues.")
        return
    table = Table(header_style="bold")
    for column in ("catalogue", "licences", "works", "without fingerprint", "open flags"):
        table.add_column(column, justify="left" if column in {"catalogue", "licences"} else "right", overflow="fold")
    for one in found:
        counts = one.works, one.without_fingerprint, one.open_flags
        table.add_row(one.name, ", ".join(one.licences), *(f"{n:,}" for n in counts))
    out.print(table, markup=False)


@command
@click.argument("name")
@json_option
def remove(config: "Config", name: str, *, as_json: bool) -> None:
    """Remove the catalogue NAME: its works, their flags and the verdicts on them.

    The next sync brings it back if [reference] still lists it.
    """
    from neardup import reference as works_to_protect
    from neardup.app import open_app

    async def do_remove(_: "asyncio.Event") -> int:
        async with open_app(config) as app:
            return await works_to_protect.remove_catalogue(app, name)

    with console.show_waiting("reference remove"):
        removed = run_async(do_remove)
    click.echo(json.dumps({"removed": removed}) if as_json else f"{name}: {removed:,} works were removed")


for one in (sync, list_, remove):
    reference.add_command(one)
