"""Writes the report as one HTML page."""

from collections import Counter
from pathlib import Path

from neardup.config import Config
from neardup.core.verify.tiers import kinds
from neardup.insights.charts.page import Table, can_plot, write_page
from neardup.insights.report.facts import Facts
from neardup.ledger import now_ms
from neardup.records import rfc3339


def write_report(path: Path, facts: Facts, config: Config) -> None:
    """Write the report; it replaces an older one atomically.  Raises Fatal if it cannot be written."""
    drawn = dict[str, str]()
    if can_plot():
        from neardup.insights.report.plots import plots  # noqa: PLC0415 - it imports matplotlib

        drawn = plots(facts, config.detection)
    total = sum(facts.kinds.values())
    about = f"{facts.stories:,} stories and {total:,} flags as of {rfc3339(now_ms())}."
    write_page(path, "neardup report", about, plots=drawn, tables=_tables(facts))


def _tables(facts: Facts) -> list[Table]:
    tables = [
        Table(
            "Flags by language and kind",
            "Withdrawn flags are not counted.",
            ("language", *kinds(), "all"),
            _by_kind(facts),
        )
    ]
    if facts.run:
        note = f"Milliseconds, in the {facts.run['command']} run that began at {rfc3339(facts.run['started_at'])}."
        columns = ("stage", "times", "total, s", "median", "95 %", "99 %")
        rows = [
            (
                stage,
                f"{one['times']:,}",
                f"{one['seconds']:,.2f}",
                *(f"{1000 * one[name]:,.3g}" for name in ("p50", "p95", "p99")),
            )
            for stage, one in facts.stages.items()
        ]
        tables.append(Table("Latency of the stages", note, columns, rows))
    return tables


def _by_kind(facts: Facts) -> list[tuple[str, ...]]:
    totals = Counter[str]()
    for (_, kind), n in facts.kinds.items():
        totals[kind] += n
    rows: list[tuple[str, Counter[str]]] = [("all", totals)]
    rows += [
        (language, Counter({kind: facts.kinds.get((language, kind), 0) for kind in kinds()}))
        for language in sorted({language for language, _ in facts.kinds})
    ]
    return [(name, *(f"{counted[kind]:,}" for kind in kinds()), f"{counted.total():,}") for name, counted in rows]
