"""The commands that look after ledger and index: `doctor`, `backup`, `reindex`, `forget`."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async
from neardup.errors import Misuse

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.ops.check_result import Level

WARNINGS = 3  # the exit code of `doctor` where nothing fails


@command
@json_option
def doctor(config: "Config", as_json: bool) -> None:
    """Test config, ledger, index, source, object store, clock and fingerprints.

    Exits with 1 if a test fails, and with 3 if there are only warnings.
    """
    from neardup.ops.check_result import Level

    levels = print_checks(config, as_json=as_json)
    if levels != {Level.OK}:
        raise SystemExit(1 if Level.FAIL in levels else WARNINGS)


def print_checks(config: "Config", *, as_json: bool = False) -> "set[Level]":
    """Test each part of the installation, print a line for each, and return the levels that occurred."""
    from neardup.ops.doctor import examine

    async def print_results(_: "asyncio.Event") -> "set[Level]":
        levels = set()
        async for result in examine(config):
            levels.add(result.level)
            facts = {"part": result.part, "good": result.good, "level": result.level, "said": result.message}
            label = result.level if result.good else result.level.upper()
            click.echo(
                json.dumps(facts, ensure_ascii=False) if as_json else f"{label:4} {result.part}: {result.message}"
            )
        return levels

    return run_async(print_results)


@command
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def backup(config: "Config", path: Path, as_json: bool) -> None:
    """Write a checked copy of the ledger to PATH and of its passages to PATH.passages, also during a run.

    A copy that exists is replaced.
    """
    from neardup.ops.backup import back_up

    with console.show_waiting("backup"):
        size, passages = back_up(config.ledger.path, path)
    click.echo(
        json.dumps({"bytes": size, "passages": passages})
        if as_json
        else f"{path}, {size:,} bytes, and {passages:,} bytes of passages, checked"
    )


@command
@json_option
def reindex(config: "Config", as_json: bool) -> None:
    """Rebuild the index from the ledger, and repair the passage index.

    Only the pages of stories that the passage index lacks are read.
    """
    from neardup.app import open_app
    from neardup.ledger.lock import only_one
    from neardup.ops.reindex import reindex as rebuild

    async def rebuild_indexes(_: "asyncio.Event") -> tuple[int, Counter[str]]:
        with only_one(config.ledger.path, "reindex"):
            async with open_app(config) as app:
                with console.show_count("reindex") as progress:
                    return await rebuild(app, progress)

    indexed, read = run_async(rebuild_indexes)
    if as_json:
        click.echo(json.dumps({"indexed": indexed, "read_again": dict(read)}))
    else:
        results = ", ".join(f"{n:,} {result}" for result, n in read.items())
        click.echo(f"{indexed:,} stories are indexed" + (f"; read again for their passages: {results}" if read else ""))


@command
@click.argument("listed_id", metavar="ID")
@click.option("--undo", is_flag=True, help="Let listings bring the forgotten story back.")
@json_option
def forget(config: "Config", listed_id: str, *, undo: bool, as_json: bool) -> None:
    """Remove a story from ledger, index, flags and dead letters.

    Listings do not bring it back, unless that is undone.
    """
    from neardup.app import open_app, open_ledger
    from neardup.ledger import forgotten, stories
    from neardup.ledger.lock import only_one
    from neardup.pipeline import submitted_pages
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.passage_sync import PassageSync
    from neardup.source.parse import id_of

    try:
        story_id = id_of(listed_id)
    except ValueError as error:
        raise Misuse(str(error)) from None
    if undo:
        with open_ledger(config) as ledger:
            was_forgotten = run_async(lambda _: ledger.do(forgotten.undo, story_id))
        listed = "is listed again by the next run" if was_forgotten else "was not forgotten"
        click.echo(json.dumps({"undone": was_forgotten}) if as_json else f"story {story_id} {listed}")
        return

    async def forget_story(_: "asyncio.Event") -> bool:
        with only_one(config.ledger.path, "forget"):
            async with open_app(config) as app:
                await catch_up(app.index, app.ledger, app.version)
                await PassageSync(app.passages, app.ledger).start()
                known = await app.ledger.do(stories.forget, story_id)
                submitted_pages.remove_story(config.ledger.path, story_id)
                await catch_up(app.index, app.ledger, app.version)
                return known

    with console.show_waiting("forget"):
        known = run_async(forget_story)
    click.echo(
        json.dumps({"forgotten": known})
        if as_json
        else f"story {listed_id} {'is forgotten' if known else 'was not known; listings leave it out from now on'}"
    )
