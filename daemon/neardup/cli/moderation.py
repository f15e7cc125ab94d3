"""The commands about copies: `check`, `compare`, `export`, `review`."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import click

from neardup.app import open_app
from neardup.cli import printing
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async
from neardup.cli.flag_options import selects
from neardup.config import Config
from neardup.config.address import address
from neardup.config.export import FORMATS, Format, format_of, target_of
from neardup.core.text.html import Unreadable
from neardup.errors import Fatal, Misuse
from neardup.ledger import connect, flags, read, translated
from neardup.ledger.selection import Selection
from neardup.moderation.desk.app import serve
from neardup.moderation.evidence.page import write_evidence
from neardup.moderation.evidence.side_by_side import side_by_side
from neardup.moderation.export.write import Order
from neardup.moderation.export.write import export as write_export
from neardup.query.check import check as check_text
from neardup.query.compare import compare as compare_texts


@command
@click.argument("file", type=click.File("rb"))
@click.option("--language", required=True, metavar="L", help="HINDI, ENGLISH, ... or hi, en, ...")
@json_option
def check(config: Config, file: IO[bytes], language: str, as_json: bool) -> None:
    """What FILE (a page or plain text; - is stdin) would be flagged against; stores nothing."""
    try:
        spoken = config.registry.find(language)
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
        printing.show_matches(matches)


@command
@click.argument("a")
@click.argument("b")
@click.option("--html", type=click.Path(path_type=Path), metavar="PATH", help="Write a page that shows it.")
@json_option
def compare(config: Config, a: str, b: str, html: Path | None, as_json: bool) -> None:
    """What A and B share: each a story's id, or a file (a page or plain text)."""
    if html is not None:
        run_async(lambda _: write_evidence(config, a, b, html))
        click.echo(f"{html}", err=True)
        return
    facts = run_async(lambda _: compare_texts(config, a, b))
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        printing.out.print(side_by_side(facts))


@command
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="[by the output's ending, or export.format]")
@click.option("-o", "--output", default="-", metavar="PATH", help="A file, or s3://BUCKET/KEY; - is stdout.")
@click.option("--bom", is_flag=True, help="CSV with a byte order mark, by which Excel knows UTF-8.")
@selects
def export(config: Config, file_format: Format | None, output: str, selection: Selection, *, bom: bool) -> None:
    """The flagged pairs, worst first, for review."""
    try:
        target = None if output == "-" else target_of(output)
    except ValueError as error:
        raise Misuse(f"--output: {error}") from None
    chosen = file_format or (format_of(target) if target else None) or config.export.format or "csv"
    if bom and chosen != "csv":
        raise Misuse(f"--bom: {chosen} takes none")
    order = Order(chosen, selection, bom=bom)
    given = run_async(lambda _: write_export(config, target, order))
    if target is not None:
        click.echo(f"{len(given):,} flags: {target}", err=True)
    with translated(config.ledger.path), closing(connect(config.ledger.path)) as db:
        flags.mark_exported(db, given)


@command
@click.option("--listen", metavar="HOST:PORT", help="Where to serve it.  [review.listen]")
def review(config: Config, listen: str | None) -> None:
    """The review desk: a local web page where moderators judge the flagged pairs, until SIGTERM."""
    try:
        at = address(listen) if listen else config.review.listen
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    run_async(lambda stop: serve(config, at, stop), drains=True)
