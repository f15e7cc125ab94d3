"""The commands that measure: `replay`."""

import json
import sys

import click

from daemon import terminal
from daemon.cli.base import command, json_option, time_of
from daemon.config import Config
from daemon.errors import Misuse
from daemon.ledger import read, snapshot, translated
from daemon.replay import replay as replay_pairs

score = click.FloatRange(0, 1, min_open=True)


@command
@click.option("--hamming", type=click.IntRange(0, 7), help="Instead of detection.hamming.")
@click.option("--jaccard", type=score, help="Instead of detection.jaccard.")
@click.option("--containment", type=score, help="Instead of detection.containment.")
@click.option("--since", metavar="TIME", help="Only pairs judged at or after this RFC 3339 time.")
@click.option("--until", metavar="TIME", help="Only pairs judged before this time.")
@json_option
def replay(config: Config, since: str | None, until: str | None, as_json: bool, **thresholds: float | None) -> None:
    """What other thresholds would have flagged of the candidates on record, by kind and language."""
    given = {name: value for name, value in thresholds.items() if value is not None}
    if not given:
        raise Misuse("say what to change: --hamming, --jaccard or --containment")
    other = config.detection.model_copy(
        update=given
        | {"languages": {name: own.model_copy(update=given) for name, own in config.detection.languages.items()}}
    )
    period = time_of("--since", since) or 0, time_of("--until", until) or sys.maxsize
    db = read(config.ledger.path)
    with translated(config.ledger.path), snapshot(db):
        facts = replay_pairs(db, other, *period)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        terminal.show_replay(facts)
