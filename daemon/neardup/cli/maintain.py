"""The commands that look after ledger and indexes.

`status`, `doctor`, `backup`, `reindex`, `forget`, `import`, and `reference` with its own `sync`, `list` and `remove`.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.command import json_option, make_command, print_answer, print_summary, run_async
from neardup.errors import Misuse

if TYPE_CHECKING:
    import asyncio

    from neardup.app import Synced
    from neardup.config import Config
    from neardup.ops.doctor import Level
    from neardup.ops.fingerprints import ImportSummary

WARNINGS = 3  # the exit code of `doctor` where nothing fails


@make_command
@json_option
def status(config: "Config", as_json: bool) -> None:
    """Show stories, flags, runs, dead letters and the index."""
    from neardup.cli.output import show_status
    from neardup.ops.status import collect_status

    with console.show_waiting("status"):
        current = run_async(lambda _: collect_status(config))
    print_answer(current, lambda: show_status(current), as_json=as_json)


@make_command
@json_option
def doctor(config: "Config", as_json: bool) -> None:
    """Test each part of the installation, from the configuration to the fingerprints.

    Exits with 1 if a test fails, and with 3 if there are only warnings.
    """
    from neardup.ops.doctor import Level

    levels = print_checks(config, as_json=as_json)
    if levels != {Level.OK}:
        raise SystemExit(1 if Level.FAIL in levels else WARNINGS)


def print_checks(config: "Config", *, as_json: bool = False) -> "set[Level]":
    """Test each part of the installation, print a line for each, and return the levels that occurred."""
    from neardup.ops.doctor import examine

    async def print_results(_: "asyncio.Event") -> "set[Level]":
        levels, results = set["Level"](), examine(config)
        while True:
            with console.show_waiting("doctor"):
                result = await anext(results, None)
            if result is None:
                return levels
            levels.add(result.level)
            facts = {"part": result.part, "good": result.is_good, "level": result.level, "said": result.message}
            label = result.level if result.is_good else result.level.upper()
            print_answer(facts, f"{label:4} {result.part}: {result.message}", as_json=as_json)

    return run_async(print_results)


@make_command
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def backup(config: "Config", path: Path, as_json: bool) -> None:
    """Write a checked copy of the ledger to PATH and of its passages to PATH.passages, also during a run.

    A copy that exists is replaced.
    """
    from neardup.ops.backup import back_up

    with console.show_waiting("backup"):
        size, passages = back_up(config.ledger.path, path)
    sentence = f"{path}, {size:,} bytes, and {passages:,} bytes of passages, checked"
    print_answer({"bytes": size, "passages": passages}, sentence, as_json=as_json)


@make_command
@json_option
def reindex(config: "Config", as_json: bool) -> None:
    """Rebuild the index from the ledger, and repair the passage index.

    Only the pages of stories that the passage index lacks are read.
    """
    from neardup.app import open_app
    from neardup.app import reindex as rebuild
    from neardup.ledger.lock import only_one
    from neardup.records import format_count

    async def rebuild_indexes(_: "asyncio.Event") -> tuple[int, Counter[str]]:
        async with open_app(config) as app:
            with only_one(config.ledger.path, "reindex"), console.show_count("reindex") as progress:
                return await rebuild(app, progress)

    indexed, read = run_async(rebuild_indexes)
    results = ", ".join(f"{n:,} {result}" for result, n in read.items())
    stories = format_count(indexed, "story is indexed", "stories are indexed")
    sentence = stories + (f"; read again for their passages: {results}" if read else "")
    print_answer({"indexed": indexed, "read_again": read}, sentence, as_json=as_json)


@make_command
@click.argument("listed_id", metavar="ID")
@click.option("--undo", is_flag=True, help="Let listings bring the forgotten story back.")
@json_option
def forget(config: "Config", listed_id: str, *, undo: bool, as_json: bool) -> None:
    """Remove a story from ledger, index, flags and dead letters.

    Listings do not bring it back, unless that is undone.
    """
    from neardup.app import open_app, open_ledger
    from neardup.ledger import stories
    from neardup.ledger.lock import only_one
    from neardup.pipeline import submitted_pages
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.passage_sync import PassageSync
    from neardup.source.parse import parse_id

    try:
        story_id = parse_id(listed_id)
    except ValueError as error:
        raise Misuse(str(error)) from None
    if undo:
        with open_ledger(config) as ledger:
            was_forgotten = run_async(lambda _: ledger.do(stories.undo_forget, story_id))
        listed = "is listed again by the next run" if was_forgotten else "was not forgotten"
        print_answer({"undone": was_forgotten}, f"story {listed_id} {listed}", as_json=as_json)
        return

    async def forget_story(_: "asyncio.Event") -> bool:
        async with open_app(config) as app:
            with only_one(config.ledger.path, "forget"):
                # before, so that the index of another ledger is refused while nothing is removed yet
                await catch_up(app.index, app.ledger, app.version)
                await PassageSync(app.passages, app.ledger).start()
                known, page_path = await app.ledger.do(stories.forget, story_id)
                submitted_pages.remove(config.ledger.path, page_path)
                await catch_up(app.index, app.ledger, app.version)
                return known

    with console.show_waiting("forget"):
        known = run_async(forget_story)
    forgotten = "is forgotten" if known else "was not known; listings leave it out from now on"
    print_answer({"forgotten": known}, f"story {listed_id} {forgotten}", as_json=as_json)


@make_command
@click.argument("path", type=click.Path(path_type=Path, exists=True, readable=False))
@json_option
def import_(config: "Config", path: Path, as_json: bool) -> None:
    """Add fingerprints that were made elsewhere, with their flags.

    An interrupted import is resumed by the same command.  PATH is a Parquet file, as `neardup export --fingerprints`
    writes it, or a folder with the folders fingerprints and, if the stories were compared, flags and candidates.
    """
    from neardup.app import open_app
    from neardup.ops.fingerprints import import_fingerprints

    async def do_import(stop: "asyncio.Event") -> "ImportSummary":
        async with open_app(config) as app:
            with console.show_progress("import") as watch:
                return await import_fingerprints(app, path, stop, watch)

    summary = run_async(do_import, finishes_queued_work=True)
    print_summary(summary, lambda: _show_import(summary), as_json=as_json)


def _show_import(summary: "ImportSummary") -> None:
    from neardup.cli import output
    from neardup.records import format_count

    known = format_count(summary.known, "was on record", "were on record")
    others = f"{known}, {summary.changed:,} with another text, {summary.forgotten:,} forgotten"
    candidates = format_count(summary.candidates, "candidate", "candidates")
    rows: dict[str, object] = {
        "added": f"{format_count(summary.stories, 'story', 'stories')}; of the others, {others}",
        "flags": f"{summary.flags:,}, and {candidates} to be verified by the next run",
        "time": f"{summary.seconds:,.1f} s, "
        + ", ".join(f"{part} {seconds.wall:,.1f}" for part, seconds in summary.parts.items()),
    }
    if summary.sweep_owed:
        rows["next"] = "`neardup sweep`: not all stories were compared"
    output.show_summary(summary, rows)


@click.group()
def reference() -> None:
    """Sync the works to protect, list their catalogues, or remove a catalogue."""


@make_command
@json_option
def sync(config: "Config", *, as_json: bool) -> None:
    """List the works of [reference] again: add and update them, and remove those that are gone."""
    from neardup.app import open_app, sync_reference

    async def do_sync(stop: "asyncio.Event") -> "Synced":
        async with open_app(config) as app:
            with console.show_progress("reference sync") as watch:
                return await sync_reference(app, stop, watch)

    synced = run_async(do_sync, finishes_queued_work=True)
    counts = {"added": synced.added, "updated": synced.updated, "removed": synced.removed}
    print_summary(synced.summary, lambda: _show_sync(synced, counts), as_json=as_json, **counts)


def _show_sync(synced: "Synced", counts: dict[str, int]) -> None:
    from neardup.cli.output import format_reasons
    from neardup.records import format_count

    run = synced.summary.counts
    changes = ", ".join(f"{n:,} {what}" for what, n in counts.items())
    listed, others = format_count(run.listed, "work", "works"), format_reasons(run.skipped + run.dead_lettered)
    click.echo(
        f"{synced.summary.status}: {listed} listed: {changes}; not fingerprinted: {others};"
        f" pairs flagged: {format_reasons(run.flagged)}"
    )


@make_command
@json_option
def list_(config: "Config", *, as_json: bool) -> None:
    """Show the catalogues on record, with their licences, and how many works and open flags each has."""
    from neardup.cli.output import show_catalogues
    from neardup.ledger import open_snapshot, stories

    with open_snapshot(config.ledger.path) as db:
        found = stories.list_catalogues(db)
    print_answer(found, lambda: show_catalogues(found), as_json=as_json)


@make_command
@click.argument("name")
@json_option
def remove(config: "Config", name: str, *, as_json: bool) -> None:
    """Remove the catalogue NAME: its works, their flags and the verdicts on them.

    The next sync brings it back if [reference] still lists it.
    """
    from neardup.app import open_app, remove_catalogue
    from neardup.records import format_count

    async def do_remove(_: "asyncio.Event") -> int:
        async with open_app(config) as app:
            return await remove_catalogue(app, name)

    with console.show_waiting("reference remove"):
        removed = run_async(do_remove)
    works = format_count(removed, "work was removed", "works were removed")
    print_answer({"removed": removed}, f"{name}: {works}", as_json=as_json)


for subcommand in (sync, list_, remove):
    reference.add_command(subcommand)
