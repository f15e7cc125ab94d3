"""The tables that compare the flags on record with labelled pairs."""

from collections.abc import Sequence
from typing import Any

from neardup.insights.charts.page import Table
from neardup.insights.evaluate import verdict_tables
from neardup.insights.evaluate.figures import ALL, Facts
from neardup.insights.evaluate.tables import SHOWN_PAIRS, decimal, interval


def tables(facts: Facts) -> list[Table]:
    """Recall, precision by the labels and by the verdicts, misses and false flags."""
    return [
        Table(
            "Recall",
            "The share of flagged pairs among the labelled pairs that must be found; a flag of any kind counts.",
            ("language", "labelled", "n", "found", "recall", "95 % interval", "flagged as"),
            [
                (
                    row["language"],
                    row["kind"],
                    str(row["n"]),
                    str(row["found"]),
                    decimal(row["share"]),
                    interval(row),
                    ", ".join(f"{kind} {n:,}" for kind, n in row["flagged_as"].items()),
                )
                for row in (*facts["recall"], {"language": ALL, "kind": "", "flagged_as": {}, **facts["recall_of_all"]})
            ],
        ),
        Table(
            "Precision",
            "The share of the flagged pairs that are right: labelled, with a score of at least 0.45 or without scores.",
            ("language", "flagged", "right", "precision", "95 % interval"),
            [
                (row["language"], str(row["n"]), str(row["found"]), decimal(row["share"]), interval(row))
                for row in (*facts["precision"], {"language": ALL, **facts["precision_of_all"]})
            ],
        ),
        *verdict_tables.tables(facts["verdicts"]),
        _pairs("Misses", facts["misses"], ("a", "b", "language", "kind", "j", "c", "not_in_ledger")),
        _pairs(
            "False flags",
            facts["false_flags"],
            ("a", "b", "language", "kind", "jaccard", "containment", "labelled", "j", "c"),
        ),
    ]


def _pairs(title: str, pairs: Sequence[Facts], columns: Sequence[str]) -> Table:
    return Table(
        f"{title} ({len(pairs):,}), worst first",
        "" if len(pairs) <= SHOWN_PAIRS else f"The first {SHOWN_PAIRS}; --json prints all.",
        columns,
        [[_cell(pair[column]) for column in columns] for pair in pairs[:SHOWN_PAIRS]],
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return decimal(value)
        case list():
            return ", ".join(map(str, value))
    return str(value)
