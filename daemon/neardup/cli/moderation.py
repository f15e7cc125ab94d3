"""The command `export`."""

import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from neardup.cli import console
from neardup.cli.base import command, refuse_missing_folder
from neardup.cli.event_loop import run_async
from neardup.cli.flag_options import output_target, takes_flag_selection
from neardup.core.verify.keep import POLICIES
from neardup.errors import Misuse
from neardup.option_values import FORMATS

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.core.verify.keep import Policy
    from neardup.ledger.selection import Selection
    from neardup.option_values import Format


@command
@click.option(
    "--format", "file_format", type=click.Choice(FORMATS), help="Format.  [by the output's ending, or export.format]"
)
@click.option("-o", "--output", default="-", metavar="PATH", help="A file, or s3://BUCKET/KEY; - is stdout.")
@click.option("--bom", is_flag=True, help="Begin a CSV file with a byte order mark, so that Excel reads it as UTF-8.")
@click.option(
    "--by",
    type=click.Choice(["pair", "story"]),
    default="pair",
    help="A row a pair, or a row a story that copies by a selected pair, the most similar first.  [pair]",
)
@click.option(
    "--keep",
    type=click.Choice(POLICIES),
    help="Instead, a row a member of a cluster, with whether to keep it: one of each cluster, or the works.",
)
@click.option(
    "--fingerprints",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the fingerprints of all stories to this Parquet file instead; no other option goes with it.",
)
@takes_flag_selection
def export(
    config: "Config",
    file_format: "Format | None",
    output: str,
    by: Literal["pair", "story"],
    selection: "Selection",
    *,
    bom: bool,
    keep: "Policy | None",
    fingerprints: Path | None,
) -> None:
    """Write the flagged pairs, the most severe first, or the stories that copy.

    Only an export of pairs counts for --new.
    """
    from neardup.app import open_readers
    from neardup.ledger import connect, flags, meaning_flags, translate_errors
    from neardup.moderation.export.meaning import is_of_meaning
    from neardup.moderation.export.write import ExportOptions
    from neardup.moderation.export.write import export as write_export
    from neardup.option_values import format_of, unknown_ending

    if fingerprints is not None:
        _write_fingerprints(config, fingerprints)
        return
    target = output_target(output)
    if target and not file_format and (problem := unknown_ending(target)):
        raise Misuse(f"--output: {problem}, or name it with --format")
    chosen = file_format or (format_of(target) if target else None) or config.export.format or "csv"
    if bom and chosen != "csv":
        raise Misuse(f"--bom: only CSV files have a byte order mark, not {chosen}")
    if keep and by == "story":
        raise Misuse("--keep and --by story exclude each other")
    options = ExportOptions(chosen, selection, bom=bom, by="member" if keep else by, keep=keep or "earliest")
    is_shown = target is None and sys.stdout.isatty()  # rows on the terminal show the progress themselves
    with nullcontext() if is_shown else console.show_waiting("export"):
        written = run_async(lambda _: write_export(config, lambda: open_readers(config), target, options))
    if target is not None:
        click.echo(f"{len(written):,} {'flags' if options.by == 'pair' else 'stories'}: {target}", err=True)
    if options.by != "pair":
        return
    mark_exported = meaning_flags.mark_exported if is_of_meaning(selection) else flags.mark_exported
    with translate_errors(config.ledger.path), closing(connect(config.ledger.path)) as db:
        mark_exported(db, written)


def _write_fingerprints(config: "Config", path: Path) -> None:
    from neardup.ops.fingerprint_export import export_fingerprints

    context = click.get_current_context()
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if given - {"fingerprints", "config_path"}:
        raise Misuse("--fingerprints: no other option goes with it")
    refuse_missing_folder("--fingerprints", path)
    with console.show_waiting("export"):
        written = run_async(lambda _: export_fingerprints(config, path))
    click.echo(f"{written:,} stories: {path}", err=True)
