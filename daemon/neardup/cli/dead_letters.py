"""The commands about stories that could not be processed: `dead-letters`, `retry`."""

import json
from contextlib import closing
from typing import TYPE_CHECKING

import click

from neardup.cli.base import command, json_option, story_id
from neardup.errors import Misuse
from neardup.records import DEAD_LETTER_REASONS
from neardup.timestamps import rfc3339

if TYPE_CHECKING:
    from neardup.config import Config


SHOWN = 50


def _key(value: str) -> str:
    """The key of a dead letter: that of a row as it is, or that of a story by its listed id."""
    from neardup.source.parse import ROW_KEY

    return value if value.startswith(ROW_KEY) else str(story_id(value))


keys_argument = click.argument("keys", nargs=-1, metavar="[KEY]...", type=_key)
reason_option = click.option(
    "--reason", type=click.Choice(DEAD_LETTER_REASONS), help="Only dead letters with this reason."
)


@command
@keys_argument
@reason_option
@click.option("--drop", is_flag=True, help="Delete the selected dead letters; they will not be retried.")
@json_option
def dead_letters_(config: "Config", *, keys: tuple[str, ...], reason: str | None, drop: bool, as_json: bool) -> None:
    """List the stories and rows that could not be processed, or those with the given KEYs (a story's key is its id)."""
    from neardup.cli import printing
    from neardup.ledger import connect, dead_letters, read, translate_errors
    from neardup.ledger.dead_letters import DeadLetterFilter

    choice = DeadLetterFilter(reason, keys)
    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path):
        counts = dead_letters.counted(db, choice)
        shown = [] if drop else dead_letters.listed(db, choice, limit=-1 if as_json else SHOWN)
    if drop:
        if not keys and reason is None:
            raise Misuse("--drop needs KEYs or --reason")
        with closing(connect(config.ledger.path)) as db, translate_errors(config.ledger.path):
            dropped = dead_letters.drop(db, choice)
        click.echo(json.dumps({"dropped": dropped}) if as_json else f"{dropped:,} dead letters were deleted")
        return
    for dead_letter in shown:
        dead_letter |= {name: rfc3339(dead_letter[name]) for name in ("first_at", "last_at")}
    if as_json:
        click.echo(json.dumps({"by_reason": counts, "dead_letters": shown}, ensure_ascii=False))
    else:
        printing.show_dead_letters(counts, shown)


@command
@keys_argument
@reason_option
@json_option
def retry(config: "Config", *, keys: tuple[str, ...], reason: str | None, as_json: bool) -> None:
    """Process the stories of dead letters again: all but those in quarantine, or only the selected ones."""
    from neardup.cli.runs import run_and_print
    from neardup.ledger import dead_letters, read, translate_errors
    from neardup.ledger.dead_letters import DeadLetterFilter

    with closing(read(config.ledger.path)) as db, translate_errors(config.ledger.path):
        dead_letters.refuse_unknown(db, keys)
    run_and_print(config, "retry", as_json, dead_letters=DeadLetterFilter(reason, keys))
