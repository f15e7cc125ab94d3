"""The commands that find the copies of a whole corpus at once: `scan` on this machine, `spark` on a cluster."""

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.command import find_language, make_command, make_standalone_command, refuse_missing_folder, run_async
from neardup.core.verify.clusters import POLICIES
from neardup.errors import Misuse
from neardup.option_values import FORMATS

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.core.verify.clusters import Policy
    from neardup.moderation.evidence.alignment import Fragment
    from neardup.moderation.export.page import CopiedPassages
    from neardup.moderation.export.tables import ExportRow
    from neardup.option_values import Format
    from neardup.pages.reader_pool import OpenReaderPool
    from neardup.scan.job import Scan


MOST_PAIRS = 1_000  # more than a person reads; an export has all
FIRST_WORDS, LAST_WORDS = 14, 6  # shown of a long passage


@make_standalone_command
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

    A table is a CSV, TSV, JSON, JSONL or Parquet file with a column of texts; - is stdin.  A scan needs no
    configuration.  Texts are compared within their language.  Nothing is kept, unless --keep names a new ledger.
    """
    from neardup.core.languages import SHIPPED
    from neardup.ops.selectors import propose_chrome
    from neardup.scan.job import scan_documents, scan_processes
    from neardup.scan.request import STDIN, Request, create_ledger, list_documents, make_config, write_config
    from neardup.source.documents import Columns

    for option, path in (("--html", html), ("--keep", keep)):
        if path is not None:
            refuse_missing_folder(option, path)
    spoken = None if language is None else find_language(SHIPPED, language)
    request = Request(paths, against, spoken, Columns(text, row_id))
    with create_ledger(keep) as ledger, ExitStack() as stack:
        stdin = stack.enter_context(_read_stdin()) if STDIN in paths else None
        texts = ledger.with_name(f"{ledger.name}.texts")
        listing = stack.enter_context(list_documents(request, texts, stdin))
        strip = propose_chrome(listing.pages)
        config = make_config(ledger, listing.url, strip)
        config_path = None if keep is None else write_config(config)
        processes = stack.enter_context(scan_processes(config))

        async def find_and_write(_: "asyncio.Event") -> "Scan":
            done = await scan_documents(config, listing, processes, console.show_progress, is_kept=keep is not None)
            await _write_copies(config, file_format, html)
            return done

        done = run_async(find_and_write)
        _show_outcomes(done, listing.left_out, strip)
    if config_path is not None:
        click.echo(f"kept: {console.name_program()} --config {shlex.quote(str(config_path))} review", err=True)
    if fail and done.summary.counts.flagged:
        raise SystemExit(1)


@contextmanager
def _read_stdin() -> Iterator[Path]:
    """A temporary file with what stdin has."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="neardup-scan-") as folder:
        file = Path(folder) / "stdin"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield file


def _show_outcomes(done: "Scan", left_out: Counter[str], strip: Sequence[str]) -> None:
    """Print how many documents were compared, why the others were not, and what their languages seem to be.

    `strip` are the selectors of what was left out of the pages.
    """
    from neardup.core.text.scripts import describe_languages
    from neardup.records import format_count
    from neardup.scan.job import describe_unread
    from neardup.scan.request import describe_endings

    counts = done.summary.counts
    documents = f"of {counts.listed:,} documents"
    click.echo(f"{format_count(counts.fingerprinted, f'{documents} was', f'{documents} were')} compared", err=True)
    if counts.count_unread():
        click.echo(f"not compared: {describe_unread(counts)}", err=True)
    if len(done.guessed) > 1 or done.unsure:
        click.echo(describe_languages(done.guessed, done.unsure), err=True)
    if left_out:
        click.echo(f"left out, by ending: {describe_endings(left_out)}", err=True)
    if strip:
        click.echo(f"left out of the pages, because most of them share it: {', '.join(strip)}", err=True)


async def _write_copies(config: "Config", file_format: "Format | None", html: Path | None) -> None:
    """Write the copies to stdout, for people if no format is named, and as a page if `html` is where."""
    from neardup.app import open_readers
    from neardup.moderation.export.write import ExportOptions, export

    open_pool = partial(open_readers, config)
    if file_format is None:
        await show_copies(config, open_pool)
    else:
        await export(config, open_pool, None, ExportOptions(file_format))
    if html is not None:
        await export(config, open_pool, html, ExportOptions("html"))


async def show_copies(config: "Config", open_pool: "OpenReaderPool") -> None:
    """Print the open flags: the clusters, the most severe pair first, and then the pairs that join no cluster.

    At most MOST_PAIRS pairs are printed, of which the first MAX_PAIRS_WITH_PASSAGES have their passages.
    """
    from neardup.ledger import flags, open_snapshot
    from neardup.moderation.export.page import MAX_PAIRS_WITH_PASSAGES, find_copied_passages
    from neardup.moderation.export.tables import export_row
    from neardup.records import format_count

    path = config.ledger.path
    with open_snapshot(path) as db:
        total, cluster_of = flags.count(db), flags.map_clusters(db)
        pairs = [export_row(row, cluster_of) for row in flags.select(db, limit=MOST_PAIRS)]
    if not pairs:
        click.echo("No copies.")
        return
    first = {pair["flag_id"]: (pair["matched_id"], pair["story_id"]) for pair in pairs[:MAX_PAIRS_WITH_PASSAGES]}
    with console.show_waiting("scan"):
        passages = await find_copied_passages(config, open_pool, first)
    for number, members in enumerate(_group_by_cluster(pairs), 1):
        for line in _write_heading(members, number):
            click.echo(line)
        for pair in members:
            for line in _write_pair(pair, passages.get(pair["flag_id"])):
                click.echo(line)
        click.echo()
    if total > len(pairs):
        rest = format_count(total - len(pairs), "more pair", "more pairs")
        click.echo(f"and {rest}, which --format csv writes")


def _group_by_cluster(pairs: "Sequence[ExportRow]") -> "list[list[ExportRow]]":
    """The pairs of each cluster, in the order of its most severe pair, and then those of no cluster."""
    place: dict[int, int] = {}
    for pair in pairs:
        if pair["cluster_id"] is not None:
            place.setdefault(pair["cluster_id"], len(place))
    ranked = sorted(pairs, key=lambda pair: place.get(pair["cluster_id"], len(place)))
    return [list(members) for _, members in groupby(ranked, lambda pair: pair["cluster_id"])]


def _write_heading(pairs: "Sequence[ExportRow]", number: int) -> Iterator[str]:
    if pairs[0]["cluster_id"] is None:
        yield f"Pairs that join no cluster: {len(pairs):,}"
        return
    yield f"Cluster {number}: {pairs[0]['cluster_size']:,} texts"


def _write_pair(pair: "ExportRow", copied: "CopiedPassages | None") -> Iterator[str]:
    from neardup.cli.output import format_similarity
    from neardup.moderation.evidence.terminal import abridge, make_plain
    from neardup.records import format_count

    names = (make_plain(pair[f"{side}_title"]) for side in ("story", "matched"))
    words = "" if pair["copied_words"] is None else f"{pair['copied_words']:,} words"
    yield f"  {pair['kind']:14} {format_similarity(pair):>5} {words:>12}  {'  =  '.join(names)}"
    if copied is None:
        return
    for passage in copied.passages:
        yield f"      «{abridge(_write_text(passage.b), FIRST_WORDS, LAST_WORDS)}»"
    if copied.more:
        yield f"      and {format_count(copied.more, 'more passage', 'more passages')}"


def _write_text(fragments: "Sequence[Fragment]") -> str:
    """A passage, without the words around it."""
    from neardup.moderation.evidence.alignment import Highlight

    copied = [n for n, fragment in enumerate(fragments) if fragment.highlight is not Highlight.PLAIN]
    shown = fragments[copied[0] : copied[-1] + 1] if copied else ()
    return "".join(" […] " if fragment.highlight is Highlight.ELIDED else fragment.text for fragment in shown)


@partial(make_command, needs_config=False)
@click.option("--output", required=True, metavar="FOLDER", help="Where the folders of Parquet are written.")
@click.option("--master", metavar="URL", help="The cluster, such as local[2] or yarn.  [that of spark-submit]")
@click.option("--input", "table", metavar="TABLE", help="Texts to compare instead of what is configured.")
@click.option("--text", metavar="COLUMN", help="The column of --input with texts or HTML pages.  [guessed]")
@click.option("--id", "row_id", metavar="COLUMN", help="The column of --input with ids.  [guessed]")
@click.option("--language", metavar="L", help="The language of all texts of --input.  [its column language]")
@click.option("--keep", type=click.Choice(POLICIES), default="earliest", help="What to keep of a cluster.  [earliest]")
def spark(
    config: "Config | None",
    *,
    output: str,
    master: str | None,
    table: str | None,
    text: str | None,
    row_id: str | None,
    language: str | None,
    keep: "Policy",
) -> None:
    """Find the copies of a corpus on a Spark cluster, and write folders of Parquet.

    The corpus is what the configuration lists, or --input: a path of Parquet, JSONL or CSV, or a table by its name.
    """
    from neardup.config import Config, Content, Source
    from neardup.errors import needs_extra
    from neardup.source.documents import Columns

    with needs_extra("spark", "neardup spark"):
        from neardup.spark.job import Input, Job
        from neardup.spark.session import open_session

    if config is None:
        if table is None:
            raise Misuse("name a configuration with --config, or texts with --input")
        config = Config(source=Source(kind="scan"), content=Content(url="file:/"))
    spoken = None if language is None else find_language(config.registry, language)
    given = None if table is None else Input(table, Columns(text, row_id), spoken)
    with open_session(master) as opened:
        Job(opened, config, output, given, partial(click.echo, err=True), keep=keep).run()
