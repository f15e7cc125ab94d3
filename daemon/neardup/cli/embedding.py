"""The command `embed`."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option, parse_time_option
from neardup.cli.event_loop import run_async
from neardup.errors import Misuse, NeardupError

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.meaning.importing import ImportSummary
    from neardup.meaning.run import EmbeddingSummary


@command
@click.option("--since", metavar="TIME", help="Also the stories known since this RFC 3339 time.")
@click.option(
    "--import",
    "imported",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Instead, import the vectors of a Parquet file, with the columns id and vectors.",
)
@json_option
def embed(config: "Config", *, since: str | None, imported: Path | None, as_json: bool) -> None:
    """Make the vectors of works and new stories, and find translated and retold copies by them.

    The vectors of a text and its translation are close.  A day takes up to meaning.core_seconds_a_day; a later call
    goes on where this one ends.
    """
    from neardup.ledger import files
    from neardup.ledger.lock import only_one
    from neardup.meaning.importing import import_vectors
    from neardup.meaning.run import embed as embed_waiting

    if since and imported:
        raise Misuse("--since and --import exclude each other")
    known_since = parse_time_option("--since", since)

    async def do_embed(stop: "asyncio.Event") -> "EmbeddingSummary | ImportSummary":
        if imported is not None:
            return await import_vectors(config, imported, stop)
        with console.show_count("embed") as report:
            done = await embed_waiting(config, stop, known_since, report)
        await _notify(config, "stopped" if stop.is_set() else "done", done)
        return done

    with only_one(files.vectors_file(config.ledger.path), "embed"):
        done = run_async(do_embed, finishes_queued_work=True)
    click.echo(json.dumps(asdict(done)) if as_json else _in_words(done))


async def _notify(config: "Config", status: str, done: "EmbeddingSummary") -> None:
    """Post what was found to the webhook; one that fails leaves the result as it is."""
    import structlog

    from neardup.moderation.webhook import notify_embedding

    try:
        await notify_embedding(config.export, status, done.search.found)
    except NeardupError as error:
        structlog.get_logger().warning("the webhook failed", reason=str(error))


def _in_words(done: "EmbeddingSummary | ImportSummary") -> str:
    from neardup.cli.printing import by_reason
    from neardup.core.verify.tiers import RETOLD, TRANSLATED
    from neardup.meaning.importing import ImportSummary

    if isinstance(done, ImportSummary):
        return f"the vectors of {done.imported:,} stories were imported; {done.unknown:,} stories are not known"
    why = " for the budget of the next day" if done.budget_is_spent and done.waiting else ""
    return (
        f"{done.embedded:,} stories embedded in {done.core_seconds:,.0f} core seconds, {done.unchanged:,} unchanged,"
        f" not readable: {by_reason(Counter(done.unreadable))}; {done.removed:,} removed; {done.waiting:,} wait{why};"
        f" searched for {done.search.searched:,}: {done.search.found[TRANSLATED]:,} new pairs translated,"
        f" {done.search.found[RETOLD]:,} retold"
    )
