"""The commands that measure: `evaluate`, `replay`."""

import json
import sys
from pathlib import Path

import click

from daemon import console, terminal
from daemon.cli.base import command, json_option, time_of
from daemon.config import Config
from daemon.errors import Misuse
from daemon.evaluate import copies, copies_tables, report, truth_tables
from daemon.evaluate.tables import show
from daemon.evaluate.truth import read_labels
from daemon.evaluate.truth import score as score_labels
from daemon.ledger import read, snapshot, translated
from daemon.replay import replay as replay_pairs
from daemon.signals import run_async

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
    if not given or any(value != value for value in given.values()):  # noqa: PLR0124 - click lets nan through
        raise Misuse("say what to change: --hamming, --jaccard or --containment, with a number")
    other = config.detection.model_copy(
        update=given
        | {"languages": {name: own.model_copy(update=given) for name, own in config.detection.languages.items()}}
    )
    period = time_of("--since", since) or 0, time_of("--until", until) or sys.maxsize
    if period[0] >= period[1]:
        raise Misuse("--since: nothing lies between it and --until")
    db = read(config.ledger.path)
    with translated(config.ledger.path), snapshot(db):
        facts = replay_pairs(db, other, *period)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        terminal.show_replay(facts)


@command
@click.option("--sample", type=click.IntRange(2), default=300, show_default=True, help="Stories of each language.")
@click.option("--min-words", type=click.IntRange(20), default=300, show_default=True, help="Shorter ones are left out.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another one draws other stories and edits.")
@click.option("--html", type=click.Path(path_type=Path), help="The page.  [evaluation.html beside the ledger]")
@click.option(
    "--truth", type=click.Path(path_type=Path), metavar="PAIRS.jsonl", help="Score the flags on record instead."
)
@json_option
def evaluate(
    config: Config, *, sample: int, min_words: int, seed: int, html: Path | None, truth: Path | None, as_json: bool
) -> None:
    """How much is found: of copies made of the corpus's own stories, or of pairs that you labelled.

    Without --truth, stories of the configured source are copied by stated edits into a temporary
    folder, and the real pipeline is run on it with the thresholds of [detection]; ledger and index
    are not touched.  With --truth, the flags of the ledger are scored against lines of JSON that
    name two stories, a and b, and may give their kind, and j and c, their Jaccard similarity and
    containment.
    """
    if truth is not None:
        labels = read_labels(truth)
        db = read(config.ledger.path)
        with translated(config.ledger.path), snapshot(db):
            facts = score_labels(db, labels)
        tables, page = truth_tables.tables(facts), html
        if page is not None:
            report.write_truth(page, facts)
    else:
        progress = copies.Progress(console.counting, console.watching)
        facts = run_async(lambda _: copies.evaluate_copies(config, sample, min_words, seed, progress))
        tables, page = copies_tables.tables(facts), html or config.ledger.path.parent / "evaluation.html"
        report.write_copies(page, facts)
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        show(terminal.out, tables)
    if page is not None:
        click.echo(f"The page: {page}", err=as_json)
