"""The command `check`, apart from the others about copies: it loads only what it needs."""

import json
from functools import partial
from typing import IO, TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async
from neardup.errors import Fatal, Misuse

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.query.check_result import CheckResult


@partial(command, reads_pages=True)
@click.argument("file", type=click.File("rb"))
@click.option("--language", required=True, metavar="L", help="A name or an ISO code, such as HINDI or hi.")
@json_option
def check(config: "Config", file: IO[bytes], language: str, as_json: bool) -> None:
    """Show what FILE (a page or plain text; - is stdin) would be flagged against; stores nothing."""
    from neardup.app import extraction
    from neardup.checking import open_checker
    from neardup.cli import printing
    from neardup.core.page import Unreadable, prepare_file
    from neardup.ledger import read
    from neardup.pages.results import explain
    from neardup.query.check_result import Submission

    try:
        text_language = config.registry.find(language)
    except ValueError as error:
        raise Misuse(f"--language: {error}") from None
    read(config.ledger.path).close()
    page = prepare_file(file.read(), extraction(config))
    if isinstance(page, Unreadable):
        raise Fatal(f"{file.name}: {explain(page)}")

    async def check_page(_: "asyncio.Event") -> "CheckResult":
        async with open_checker(config) as checker:
            return await checker.check(Submission(text_language, page))

    with console.show_waiting("check"):
        result = run_async(check_page)
    if as_json:
        click.echo(json.dumps(result.as_dict(), ensure_ascii=False))
    else:
        printing.show_check(result)
