"""How good the flags turned out to be, by what moderators said of them."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from neardup.insights.charts.page import Table
from neardup.insights.evaluate.figures import ALL, Facts, share
from neardup.insights.evaluate.tables import decimal, interval
from neardup.ledger import read, translated, verdicts
from neardup.records import Verdict


def of_ledger(path: Path) -> list[Facts]:
    """`of_verdicts` of the ledger at a path; none where there is no ledger yet.  Raises as `read` does."""
    if not path.exists():
        return []
    with closing(read(path)) as db, translated(path):
        return of_verdicts(db)


def of_verdicts(db: sqlite3.Connection) -> list[Facts]:
    """Precision by language and kind, with an interval and the number of each verdict; the last row is all together."""
    rows = [dict(row) for row in verdicts.precision(db)]
    if not rows:
        return []
    together = {name: sum(row[name] for row in rows) for name in ("judged", *Verdict)}
    return [_told(row) for row in (*rows, {"language": ALL, "kind": ALL, **together})]


def _told(row: Facts) -> Facts:
    right = asdict(share(row["judged"] - row["not_similar"], row["judged"]))
    return {
        **{name: row[name] for name in ("language", "kind", "judged", *Verdict)},
        "precision": right["share"],
        **{end: right[end] for end in ("low", "high")},
    }


def tables(facts: Sequence[Facts]) -> list[Table]:
    """One table, or none where nothing was judged."""
    if not facts:
        return []
    return [
        Table(
            "Precision by moderators' verdicts",
            "Of the flags on record that were judged, those not judged not similar. What moderators look at first is "
            "judged most, so these are no random sample.",
            ("language", "kind", "judged", "precision", "95 % interval", *(word.replace("_", " ") for word in Verdict)),
            [
                (
                    row["language"],
                    row["kind"],
                    f"{row['judged']:,}",
                    decimal(row["precision"]),
                    interval(row),
                    *(f"{row[verdict]:,}" for verdict in Verdict),
                )
                for row in facts
            ],
        )
    ]
