"""The commands; nothing but parsing, wiring and exit codes."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import IO, Any

import click

from daemon import __version__, console
from daemon.app import open_app
from daemon.check import check as check_text
from daemon.config import Config, load
from daemon.core.html import Unreadable
from daemon.doctor import examine
from daemon.errors import Fatal, Misuse, NeardupError
from daemon.http import serve_if_free
from daemon.ledger import connect, flags, read, stories, translated
from daemon.ledger.lock import only_one
from daemon.records import language_of
from daemon.review.export import Format, record, write, write_file
from daemon.run import run_once
from daemon.service import Service
from daemon.signals import run_async
from daemon.source.listed import id_of, moment
from daemon.status import status as read_status
from daemon.summary import Summary
from daemon.sync import catch_up, rebuild

config_option = click.option(
    "--config", "config_path", type=click.Path(path_type=Path), metavar="PATH", help="The configuration.  [config.toml]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Facts as JSON on stdout.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="neardup")
@config_option
@click.pass_context
def main(context: click.Context, config_path: Path | None) -> None:
    """Finds copied stories among millions, in nine Indian languages and English."""
    context.obj = config_path
    console.set_up_logging()


def command(function: Callable[..., None]) -> click.Command:
    """A command that is given its configuration, with `--config` after its name too."""

    @wraps(function)
    def with_config(config_path: Path | None, **options: Any) -> None:
        path = config_path or click.get_current_context().obj or Path("config.toml")
        try:
            function(load(path), **options)
        except NeardupError as error:
            click.echo(f"neardup: {error}", err=True)
            raise SystemExit(error.exit_code) from None
        except asyncio.CancelledError:
            raise click.Abort from None
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # click ends it quietly
                raise
            click.echo(f"neardup: {error.strerror}", err=True)
            with suppress(OSError):  # what could not be written would be tried again at exit
                sys.stdout.close()
            raise SystemExit(1) from None

    return main.command(name=function.__name__.rstrip("_"))(config_option(with_config))


@command
def run(config: Config) -> None:
    """The daemon: daily runs on the schedule of [run], /metrics and /healthz, until SIGTERM."""
    run_async(lambda stop: Service(config, stop).run(), drains=True)


@command
@click.option(
    "--since", metavar="TIME", help="List what was updated at or after this RFC 3339 time, not the watermark."
)
@json_option
def daily(config: Config, since: str | None, as_json: bool) -> None:
    """One incremental run: what was updated since the watermark."""
    try:
        start = moment(since) if since else None
    except (ValueError, OverflowError):
        raise Misuse(f"--since: {since!r} is not an RFC 3339 time") from None
    _run_and_tell(config, "daily", as_json, since=start)


@command
@click.option("--refingerprint", is_flag=True, help="Forget every fingerprint first, and make them all anew.")
@json_option
def backfill(config: Config, refingerprint: bool, as_json: bool) -> None:
    """Every story, once; a backfill that was cut short goes on where it was."""
    _run_and_tell(config, "backfill", as_json, refingerprint=refingerprint)


def _run_and_tell(config: Config, name: str, as_json: bool, **options: Any) -> None:
    async def go(stop: asyncio.Event) -> tuple[Summary, list[dict[str, Any]]]:
        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(open_app(config))
            await serve_if_free(stack, config.metrics.listen)
            with console.watching(name) as watch:
                summary = await run_once(app, name, stop, watch, **options)
            return summary, await app.ledger.do(_flagged_since, summary.started_at)

    summary, new = run_async(go, drains=True)
    if as_json:
        click.echo(json.dumps(summary.as_dict(), ensure_ascii=False))
        return
    console.show_summary(summary)
    console.show_flags(new, summary.counts.flagged.total())
    if config.export.path:
        click.echo(f"\nAll open flags: {config.export.path}")


def _flagged_since(db: sqlite3.Connection, since: int) -> list[dict[str, Any]]:
    return [record(row) for row in flags.open_pairs(db, since=since, limit=console.SHOWN_FLAGS)]


@command
@click.argument("file", type=click.File("rb"))
@click.option("--language", required=True, metavar="L", help="HINDI, ENGLISH, ... or hi, en, ...")
@json_option
def check(config: Config, file: IO[bytes], language: str, as_json: bool) -> None:
    """What FILE (a page or plain text; - is stdin) would be flagged against; stores nothing."""
    try:
        spoken = language_of(language)
    except ValueError:
        raise Misuse(f"--language: unknown language {language!r}") from None
    body = file.read()

    async def look(_: asyncio.Event) -> list[dict[str, Any]]:
        read(config.ledger.path).close()
        async with open_app(config) as app:
            return await check_text(app, body, spoken)

    try:
        matches = run_async(look)
    except Unreadable as error:
        raise Fatal(f"{file.name}: nothing to compare: {error.reason}") from None
    if as_json:
        click.echo(json.dumps(matches, ensure_ascii=False))
    else:
        console.show_matches(matches)


@command
@click.option("--format", "file_format", type=click.Choice(["csv", "jsonl"]), help="[export.format]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, allow_dash=True), default="-", help="A file; - is stdout."
)
@click.option("--new", "only_new", is_flag=True, help="Only flags that no export has given before.")
def export(config: Config, file_format: Format | None, output: Path, only_new: bool) -> None:
    """The flagged pairs, worst first, for review."""
    chosen = file_format or config.export.format
    read(config.ledger.path).close()
    with translated(config.ledger.path):
        db = connect(config.ledger.path)
        if str(output) == "-":
            given = write(db, sys.stdout, chosen, only_new=only_new)
            sys.stdout.flush()  # what was not given must not be marked
        else:
            given = write_file(db, output, chosen, only_new=only_new)
            click.echo(f"{len(given):,} flags: {output}", err=True)
        flags.mark_exported(db, given)


@command
@json_option
def status(config: Config, as_json: bool) -> None:
    """How neardup stands: stories, flags, runs, dead letters, the index."""
    facts = run_async(lambda _: read_status(config))
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        console.show_status(facts)


@command
@json_option
def doctor(config: Config, as_json: bool) -> None:
    """Probe config, ledger, index, source, object store, clock and fingerprints."""

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
@json_option
def reindex(config: Config, as_json: bool) -> None:
    """Rebuild the index from the ledger; reads no page."""

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
    """Remove a story everywhere: ledger, index, flags, dead letters."""
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


if __name__ == "__main__":
    main()
