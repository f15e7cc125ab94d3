"""The command `import`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.ops.import_summary import ImportSummary


@command
@click.argument("path", type=click.Path(path_type=Path, exists=True, readable=False))
@json_option
def import_(config: "Config", path: Path, as_json: bool) -> None:
    """Add fingerprints that were made elsewhere, with their flags.

    An interrupted import is resumed by the same command.  PATH is a Parquet file, as `neardup export --fingerprints`
    writes it, or a folder with the folders fingerprints and, if the stories were compared, flags and candidates.
    """
    from neardup.app import open_app
    from neardup.ops.fingerprint_import import import_fingerprints

    async def do_import(stop: "asyncio.Event") -> "ImportSummary":
        async with open_app(config) as app:
            with console.show_progress("import") as watch:
                return await import_fingerprints(app, path, stop, watch)

    summary = run_async(do_import, finishes_queued_work=True)
    if as_json:
        click.echo(json.dumps({"status": summary.status, **summary.as_dict()}, ensure_ascii=False))
    else:
        _show(summary)


def _show(summary: "ImportSummary") -> None:
    from neardup.cli import printing

    others = f"{summary.known:,} were on record, {summary.changed:,} with another text, {summary.forgotten:,} forgotten"
    rows: dict[str, object] = {
        "added": f"{summary.stories:,} stories; of the others, {others}",
        "flags": f"{summary.flags:,}, and {summary.candidates:,} candidates to be verified by the next run",
        "time": f"{summary.seconds:,.1f} s, " + ", ".join(f"{part} {n.wall:,.1f}" for part, n in summary.parts.items()),
    }
    if summary.sweep_owed:
        rows["next"] = "`neardup sweep`: not all stories were compared"
    printing.show_summary(summary, rows)
