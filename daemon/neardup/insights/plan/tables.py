"""The projection as tables."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from neardup.insights.plan.project import gigabytes
from neardup.insights.plan.sample import HOUR, MINUTE

MEGA = 1 << 20


def tables(facts: Mapping[str, Any]) -> Iterable[Table | Text]:
    """The tables by language, in total and of the box's memory, an explanation, and the warnings."""
    yield _languages(facts["languages"])
    yield _totals(facts)
    yield _box(facts)
    yield Text(
        "A lookup is one in the compact layout.  Its candidates share detection.shared_bands bands; those that agree "
        "in detection.agreeing_rows rows are verified.  The box holds Redis as it grows story by story, a fifth of it "
        "copied while the append-only file is rewritten, the daemon, a sweep, and 0.5 GiB for the operating system.  "
        "The times do not include verification."
    )
    if facts["warnings"]:
        yield Text("\n".join(f"! {warning}" for warning in facts["warnings"]))


def _languages(languages: Mapping[str, Any]) -> Table:
    """The table by language: MiB by tier, and what a lookup reads."""
    table = _table(
        "MiB of",
        "stories",
        "documented\nnear",
        "\nsimilar",
        "compact\nnear",
        "\nsimilar",
        "SQLite\nindex",
        "\nledger",
        "a lookup reads\nnumbers",
        "\ncandidates",
    )
    for language, own in languages.items():
        sizes = [
            *own["documented_bytes"].values(),
            *own["compact_bytes"].values(),
            sum(own["sqlite_bytes"].values()),
            own["ledger_bytes"],
        ]
        reads = own["lookup"]["compact"].values()
        table.add_row(
            language,
            f"{own['stories']:,.0f}",
            *(f"{size / MEGA:,.1f}" for size in sizes),
            *(f"{sum(tier[kind] for tier in reads):,.0f}" for kind in ("numbers", "candidates")),
        )
    return table


def _totals(facts: Mapping[str, Any]) -> Table:
    table = _table("in all", "documented", "compact", "SQLite index")
    languages = facts["languages"].values()
    stories = max(sum(own["stories"] for own in languages), 1)
    sqlite = sum(sum(own["sqlite_bytes"].values()) for own in languages)
    ledger = sum(own["ledger_bytes"] for own in languages)
    grown, rebuilt = (
        [facts["redis"][name][state] for name in ("documented", "compact")] for state in ("grown", "rebuilt")
    )
    table.add_row("index", *map(gigabytes, [*grown, sqlite]))
    table.add_row("  bytes a story", *(f"{size / stories:,.0f}" for size in (*grown, sqlite)))
    table.add_row("  after a reindex", *map(gigabytes, rebuilt), "")
    for name, state in (("  in Valkey", "grown"), ("  in Valkey, after a reindex", "rebuilt")):
        table.add_row(name, *(gigabytes(facts["valkey"][layout][state]) for layout in ("documented", "compact")), "")
    table.add_row("ledger, on disk", *[gigabytes(ledger)] * 3)
    table.add_row("passage index, on disk", *[gigabytes(facts["passages"]["bytes"])] * 3)
    table.add_row("index of titles, on disk", *[gigabytes(facts["title_index_bytes"])] * 3)
    kinds = {
        "backfill": "backfill",
        "fresh": "  with --fresh, before its sweep",
        "daily": f"{facts['daily_stories']:,} new stories",
    }
    for kind, name in kinds.items():
        runs = [facts[kind][index] for index in ("documented", "compact", "sqlite")]
        table.add_row(name, *(_time(run["seconds"]) for run in runs))
        table.add_row("    limited by", *(run["limited_by"] for run in runs))
    cold = facts["passages"]
    table.add_row(
        "  their passages looked up, cold", *[f"{cold['daily_reads']:,.0f} reads, {_time(cold['daily_seconds'])}"] * 3
    )
    return table


def _box(facts: Mapping[str, Any]) -> Table:
    boxes = [facts["memory"][name] for name in ("documented", "compact")]
    table = _table(f"of {gigabytes(facts['memory']['box'])} of memory", "documented", "compact")
    for part in ("redis", "rewrite", "daemon", "sweep", "system", "needed"):
        table.add_row(part, *(gigabytes(box[part]) for box in boxes))
    table.add_row("days until it is full", *map(_days, facts["days_until_full"].values()))
    return table


def _time(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:,.1f} s"
    return f"{seconds / HOUR:,.1f} h" if seconds >= HOUR else f"{seconds / MINUTE:,.1f} min"


def _days(days: float | None) -> str:
    return "over ten years" if days is None else "does not fit" if not days else f"{days:,.0f}"


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, vertical="bottom")
    for name in others:
        table.add_column(name, justify="right")
    return table
