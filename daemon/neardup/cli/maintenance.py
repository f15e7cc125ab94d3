"""The commands that look after ledger and index: `status`, `doctor`, `backup`, `reindex`, `forget`."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

import click

from neardup.app import open_app
from neardup.cli import console, printing
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async
from neardup.config import Config
from neardup.errors import Misuse
from neardup.ledger import stories
from neardup.ledger.backup import back_up
from neardup.ledger.lock import only_one
from neardup.ops.doctor import examine
from neardup.ops.status import status as read_status
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.source.parse import id_of


@command
@json_option
def status(config: Config, as_json: bool) -> None:
    """Show stories, flags, runs, dead letters and the index."""
    found = run_async(lambda _: read_status(config))
    if as_json:
        click.echo(json.dumps(asdict(found), ensure_ascii=False))
    else:
        printing.show_status(found)


@command
@json_option
def doctor(config: Config, as_json: bool) -> None:
    """Test config, ledger, index, source, object store, clock and fingerprints."""

    async def probe(_: asyncio.Event) -> bool:
        good = True
        async for finding in examine(config):
            good &= finding.good
            if as_json:
                click.echo(json.dumps(asdict(finding), ensure_ascii=False))
            else:
                click.echo(f"{'ok  ' if finding.good else 'FAIL'} {finding.part}: {finding.said}")
        return good

    if not run_async(probe):
        raise SystemExit(1)


@command
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def backup(config: Config, path: Path, as_json: bool) -> None:
    """Write a checked copy of the ledger to PATH, also during a run; replaces an existing copy."""
    size = back_up(config.ledger.path, path)
    click.echo(json.dumps({"bytes": size}) if as_json else f"{path}, {size:,} bytes, checked")


@command
@json_option
def reindex(config: Config, as_json: bool) -> None:
    """Rebuild the index from the ledger, without reading a page."""

    async def go(_: asyncio.Event) -> int:
        with only_one(config.ledger.path, "reindex"):
            async with open_app(config) as app:
                with console.counting("reindex") as progress:
                    return await rebuild(app.index, app.ledger, app.version, progress)

    done = run_async(go)
    click.echo(json.dumps({"indexed": done}) if as_json else f"{done:,} stories are indexed")


@command
@click.argument("listed_id", metavar="ID")
@json_option
def forget(config: Config, listed_id: str, as_json: bool) -> None:
    """Remove a story from ledger, index, flags and dead letters."""
    try:
        story_id = id_of(listed_id)
    except ValueError as error:
        raise Misuse(str(error)) from None

    async def go(_: asyncio.Event) -> bool:
        with only_one(config.ledger.path, "forget"):
            async with open_app(config) as app:
                await catch_up(app.index, app.ledger, app.version)
                there = await app.ledger.do(stories.forget, story_id)
                await catch_up(app.index, app.ledger, app.version)
                return there

    there = run_async(go)
    click.echo(
        json.dumps({"forgotten": there})
        if as_json
        else f"story {story_id} {'is forgotten' if there else 'was not known'}"
    )
