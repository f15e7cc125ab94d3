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
from neardup.ops.status import status as read_status
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.source.parse import id_of


@command
@json_option
def status(config: Config, as_json: bool) -> None:
    """Show stories, flags, runs, dead letters and the index."""
    current = run_async(lambda _: read_status(config))
    if as_json:
        click.echo(json.dumps(asdict(current), ensure_ascii=False))
    else:
        printing.show_status(current)


@command
@json_option
def doctor(config: Config, as_json: bool) -> None:
    """Test config, ledger, index, source, object store, clock and fingerprints."""
    from neardup.ops.doctor import examine  # noqa: PLC0415 - loads what it tests

    async def print_probes(_: asyncio.Event) -> bool:
        all_good = True
        async for result in examine(config):
            all_good &= result.good
            if as_json:
                click.echo(
                    json.dumps({"part": result.part, "good": result.good, "said": result.message}, ensure_ascii=False)
                )
            else:
                click.echo(f"{'ok  ' if result.good else 'FAIL'} {result.part}: {result.message}")
        return all_good

    if not run_async(print_probes):
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

    async def rebuild_index(_: asyncio.Event) -> int:
        with only_one(config.ledger.path, "reindex"):
            async with open_app(config) as app:
                with console.show_count("reindex") as progress:
                    return await rebuild(app.index, app.ledger, app.version, progress)

    indexed = run_async(rebuild_index)
    click.echo(json.dumps({"indexed": indexed}) if as_json else f"{indexed:,} stories are indexed")


@command
@click.argument("listed_id", metavar="ID")
@json_option
def forget(config: Config, listed_id: str, as_json: bool) -> None:
    """Remove a story from ledger, index, flags and dead letters."""
    try:
        story_id = id_of(listed_id)
    except ValueError as error:
        raise Misuse(str(error)) from None

    async def forget_story(_: asyncio.Event) -> bool:
        with only_one(config.ledger.path, "forget"):
            async with open_app(config) as app:
                await catch_up(app.index, app.ledger, app.version)
                forgotten = await app.ledger.do(stories.forget, story_id)
                await catch_up(app.index, app.ledger, app.version)
                return forgotten

    forgotten = run_async(forget_story)
    click.echo(
        json.dumps({"forgotten": forgotten})
        if as_json
        else f"story {story_id} {'is forgotten' if forgotten else 'was not known'}"
    )
