"""The command `scan`."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import refuse_missing_folder, standalone_command
from neardup.cli.event_loop import run_async
from neardup.errors import Misuse
from neardup.option_values import FORMATS
from neardup.records import Language

HEAD_BYTES = 65_536  # of stdin, by which its kind is known

if TYPE_CHECKING:
    import asyncio

    from neardup.option_values import Format
    from neardup.pipeline.summary import Counts
    from neardup.scan.request import Request


@standalone_command
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--language", metavar="L", help="The language of all texts.  [detected for each]")
@click.option("--text", metavar="COLUMN", help="The column of a table that holds the texts.  [guessed]")
@click.option("--id", "row_id", metavar="COLUMN", help="The column that names the rows.  [guessed, or their numbers]")
@click.option(
    "--against", multiple=True, metavar="REFERENCE", help="Compare with these documents only; may be repeated."
)
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="Write the pairs to stdout as `export` does.")
@click.option("--html", type=click.Path(path_type=Path), metavar="PATH", help="Also write the pairs as an HTML page.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DB", help="Keep the ledger, for `show` and `review`.")
@click.option("--fail", is_flag=True, help="Exit with 1 if there are copies.")
def scan(
    *,
    paths: tuple[str, ...],
    language: str | None,
    text: str | None,
    row_id: str | None,
    against: tuple[str, ...],
    file_format: "Format | None",
    html: Path | None,
    keep: Path | None,
    fail: bool,
) -> None:
    """Find the copies among texts: folders and files of .txt, .md and .html, and tables.

    A table is a CSV, TSV, JSONL or Parquet file with a column of texts; - is stdin.  A scan needs no configuration.
    Texts are compared within their language.  Nothing is kept, unless --keep names a new ledger.
    """
    from neardup.app import open_readers
    from neardup.moderation.export.write import ExportOptions
    from neardup.moderation.export.write import export as write_export
    from neardup.scan.job import scan_documents, scan_processes
    from neardup.scan.request import STDIN, Request, config_of, list_documents, new_ledger, write_config
    from neardup.source.documents import Columns

    for option, path in (("--html", html), ("--keep", keep)):
        if path is not None:
            refuse_missing_folder(option, path)
    spoken = None if language is None else _language(language)
    request = Request(paths, against, spoken, Columns(text, row_id))
    with new_ledger(keep) as ledger, ExitStack() as stack:
        stdin = stack.enter_context(_stdin(request)) if STDIN in paths else None
        texts = ledger.with_name(f"{ledger.name}.texts")
        listing = stack.enter_context(list_documents(request, texts, stdin))
        config = config_of(ledger, listing.url)
        processes = stack.enter_context(scan_processes(config))

        async def find_and_write(_: "asyncio.Event") -> "Counts":
            readers = partial(open_readers, config)
            counts = await scan_documents(config, listing.documents, processes, console.show_progress)
            if file_format is None:
                from neardup.cli.found_copies import show_copies

                await show_copies(config, readers)
            else:
                await write_export(config, readers, None, ExportOptions(file_format))
            if html is not None:
                await write_export(config, readers, html, ExportOptions("html"))
            return counts

        counts = run_async(find_and_write)
        _show_outcomes(counts, listing.left_out)
    if keep is not None:
        click.echo(f"kept: neardup --config {write_config(config)} review", err=True)
    if fail and counts.flagged:
        raise SystemExit(1)


@contextmanager
def _stdin(request: "Request") -> Iterator[Path]:
    """A temporary file with what stdin has, with the ending that fits it."""
    from tempfile import TemporaryDirectory

    from neardup.source.documents import ending_of

    with TemporaryDirectory(prefix="neardup-scan-") as folder:
        head = sys.stdin.buffer.read(HEAD_BYTES)
        file = Path(folder) / f"stdin{ending_of(head, request.columns)}"
        with file.open("wb") as copy:
            copy.write(head)
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield file


def _language(name: str) -> Language:
    from neardup.languages import SHIPPED

    try:
        return SHIPPED.find(name)
    except ValueError as error:
        raise Misuse(f"--language: {error}") from None


def _show_outcomes(counts: "Counts", left_out: Counter[str]) -> None:
    """Print how many documents were compared, and why the others were not."""
    from neardup.scan.job import unread_in_words
    from neardup.scan.request import endings_in_words

    click.echo(f"{counts.fingerprinted:,} of {counts.listed:,} documents were compared", err=True)
    if counts.unread():
        click.echo(f"not compared: {unread_in_words(counts)}", err=True)
    if left_out:
        click.echo(f"left out, by ending: {endings_in_words(left_out)}", err=True)
