"""The precision of the flags, by the verdicts of moderators."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import asdict

from neardup.core.intervals import estimate_share
from neardup.insights.evaluate.tables import ALL, Facts, Table, format_decimal, format_interval
from neardup.ledger import open_snapshot, verdicts
from neardup.records import DECIDING


def measure_precision_on_record(path: Path) -> list[Facts]:
    """Return `measure_precision` of a ledger; empty if there is no ledger yet.  Raises as `read` does."""
    if not path.exists():
        return []
    with open_snapshot(path) as db:
        return measure_precision(db)


def measure_precision(db: sqlite3.Connection) -> list[Facts]:
    """Precision by language and kind, with its interval and the number of each verdict; the last row is the total."""
    rows = verdicts.count_verdicts(db)
    if not rows:
        return []
    total = {name: sum(row[name] for row in rows) for name in ("judged", *DECIDING)}
    return [_add_precision(row) for row in (*rows, {"language": ALL, "kind": ALL, **total})]


def _add_precision(row: Facts) -> Facts:
    right = asdict(estimate_share(row["judged"] - row["not_similar"], row["judged"]))
    return {
        **{name: row[name] for name in ("language", "kind", "judged", *DECIDING)},
        "precision": right["share"],
        **{end: right[end] for end in ("low", "high")},
    }


def make_precision_tables(facts: Sequence[Facts]) -> list[Table]:
    """One table, or none if there are no verdicts."""
    if not facts:
        return []
    return [
        Table(
            "Precision by moderators' verdicts",
            "The share of the decided flags that were not decided to be not similar. Moderators decide the most severe "
            "flags first, so these are not a random sample.",
            (
                "language",
                "kind",
                "decided",
                "precision",
                "95 % interval",
                *(word.replace("_", " ") for word in DECIDING),
            ),
            [
                (
                    row["language"],
                    row["kind"],
                    f"{row['judged']:,}",
                    format_decimal(row["precision"]),
                    format_interval(row),
                    *(f"{row[verdict]:,}" for verdict in DECIDING),
                )
                for row in facts
            ],
        )
    ]
