"""The command that measures the live index: `audit`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.base import command, json_option, parse_time_option
from neardup.cli.event_loop import run_async
from neardup.timestamps import rfc3339

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.insights.charts.page import Table
    from neardup.insights.self_checks.audit.run import Audited, Miss
    from neardup.ledger.recalls import Recall


DAY_MS = 24 * 3_600_000


@command
@click.option("--sample", type=click.IntRange(1, 10_000), default=200, show_default=True, help="Stories to compare.")
@click.option("--since", metavar="TIME", help="Sample stories known since this RFC 3339 time.  [24 hours ago]")
@json_option
def audit_(config: "Config", sample: int, since: str | None, as_json: bool) -> None:
    """Measure what the index misses: compare some of the latest stories with all others, without the index.

    Pairs are verified on the texts.  Those that should be flagged and are not are listed, each with a reason.
    """
    from neardup.app import open_app
    from neardup.cli import printing
    from neardup.insights.evaluate.tables import show
    from neardup.insights.self_checks.audit.run import audit
    from neardup.ledger import now_ms

    known_since = parse_time_option("--since", since)
    known_since = now_ms() - DAY_MS if known_since is None else known_since

    async def run(_: "asyncio.Event") -> "Audited":
        async with open_app(config) as app:
            return await audit(app, sample, known_since)

    with console.show_waiting("audit"):
        done = run_async(run)
    figures = {name: getattr(done, name) for name in ("stories", "unreadable", "compared", "candidates", "left_out")}
    if as_json:
        facts = {
            "since": rfc3339(known_since),
            **figures,
            "recall": [_recall_facts(one) for one in done.recalls],
            "misses": [asdict(miss) for miss in done.misses],
        }
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    click.echo(", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in figures.items()))
    show(printing.out, [_recall_table(done.recalls), _miss_table(done.misses)])


def _recall_facts(one: "Recall") -> dict[str, object]:
    from neardup.core.intervals import share

    measured = share(one.found, one.total)
    row = {"language": one.language, "tier": one.subject, "found": one.found, "n": one.total}
    return {**row, "share": measured.share, "low": measured.low, "high": measured.high}


def _recall_table(found: "Sequence[Recall]") -> "Table":
    from neardup.insights.charts.page import Table
    from neardup.insights.evaluate.tables import decimal, interval
    from neardup.ledger import recalls

    rows = sorted(found, key=lambda one: one.language == recalls.ALL)
    return Table(
        "Recall",
        "The share of flagged pairs among those that should be flagged, by the kind that the texts make them.",
        ("language", "tier", "n", "found", "recall", "95 % interval"),
        [
            (one.language, one.subject, f"{one.total:,}", f"{one.found:,}", decimal(one.share), interval(facts))
            for one in rows
            for facts in [_recall_facts(one)]
        ],
    )


def _miss_table(misses: "Sequence[Miss]") -> "Table":
    from neardup.insights.charts.page import Table
    from neardup.insights.evaluate.tables import SHOWN_PAIRS, decimal

    return Table(
        f"Not flagged ({len(misses):,})",
        "" if len(misses) <= SHOWN_PAIRS else f"The first {SHOWN_PAIRS}; --json prints all.",
        ("story", "match", "language", "kind", "Jaccard", "containment", "reason"),
        [
            (
                *(str(story_id) for story_id in (one.story_id, one.matched_id)),
                one.language,
                one.kind,
                decimal(one.jaccard),
                decimal(one.containment),
                one.reason,
            )
            for one in misses[:SHOWN_PAIRS]
        ],
    )
