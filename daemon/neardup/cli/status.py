"""The command `status`, apart from the others that look after the ledger: it loads only what it needs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option
from neardup.cli.event_loop import run_async

if TYPE_CHECKING:
    from neardup.config import Config


@command
@json_option
def status(config: "Config", as_json: bool) -> None:
    """Show stories, flags, runs, dead letters and the index."""
    from neardup.cli.status_sections import show_status
    from neardup.ops.status import status as read_status

    with console.show_waiting("status"):
        current = run_async(lambda _: read_status(config))
    if as_json:
        click.echo(json.dumps(asdict(current), ensure_ascii=False))
    else:
        show_status(current)
