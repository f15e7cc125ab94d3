"""The threshold of translated and retold pairs, fitted to the stories of the corpus."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neardup.config import Config
from neardup.embedding.parts import open_parts
from neardup.errors import Misuse
from neardup.insights.charts.page import Table, can_plot, write_page
from neardup.insights.evaluate.figures import Facts
from neardup.insights.evaluate.parallel_samples import sample_margins
from neardup.insights.evaluate.tables import decimal
from neardup.ledger import Ledger, files, meaning_flags
from neardup.ledger.lock import only_one
from neardup.meaning import neighbours
from neardup.meaning.margins import LEAST_STORIES, Gumbel, fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.5, 0.1, 0.01, 0.001, 0.0001)  # of the stories, whose margins the table compares


async def evaluate_meaning(config: Config, page: Path) -> Facts:
    """Fit the threshold to the stories that were searched for, keep it with their vectors, and write a page of it.

    Pairs below it that have no verdict are removed, and stories that reach it are searched for by the next
    `neardup embed`.  Raises as `open_parts` does, and Misuse for too few stories and while `neardup embed` runs.
    """
    path = files.vectors_file(config.ledger.path)
    if config.meaning is None or not path.exists():
        raise Misuse("no story has vectors: set [meaning] and run `neardup embed` first")
    async with AsyncExitStack() as stack:
        stack.enter_context(only_one(path, "embed"))
        parts = await stack.enter_async_context(open_parts(config))
        ledger, held = stack.enter_context(closing(Ledger(config.ledger.path))), parts.vectors
        widest = await held.do(neighbours.widest_margins)
        if len(widest) < LEAST_STORIES:
            raise Misuse(f"{len(widest):,} stories were searched for; a fit needs {LEAST_STORIES}")
        before = (await held.do(neighbours.distribution)).exceeded_by(config.meaning.false_alarms)
        fitted = fit(widest)
        least = fitted.exceeded_by(config.meaning.false_alarms)
        again = await held.do(neighbours.keep_fit, fitted, len(widest), least)
        removed = await ledger.do(meaning_flags.remove_below, least)
        samples = await sample_margins(parts)
    facts = {
        "stories": len(widest),
        "false_alarms": config.meaning.false_alarms,
        "threshold_before": before,
        "threshold": least,
        "location": fitted.location,
        "scale": fitted.scale,
        "removed": removed,
        "searched_again": again,
        "samples": [
            {"kind": pair.kind, "a": pair.a, "b": pair.b, "margin": margin, "found": margin >= least}
            for pair, margin in samples
        ],
        "margins": [
            {
                "share": share,
                "fitted": fitted.exceeded_by(share),
                "measured": float(np.quantile(widest, 1 - share)) if share * len(widest) >= 1 else None,
            }
            for share in SHARES
        ],
    }
    _write(page, facts, widest, fitted)
    return facts


def meaning_tables(facts: Facts) -> list[Table]:
    """The threshold, the margins that shares of the stories exceed, and the samples that the threshold finds."""
    found = sum(row["found"] for row in facts["samples"])
    return [
        Table(
            "Threshold",
            f"Fitted to {facts['stories']:,} stories, for false alarms of {facts['false_alarms']:g} of the stories.",
            ("", "margin"),
            [("before", decimal(facts["threshold_before"])), ("now", decimal(facts["threshold"]))],
        ),
        Table(
            "Widest margins of stories",
            "The margin that a share of the stories exceeds, by the fit and as measured. Copies widen the latter.",
            ("share", "fitted", "measured"),
            [(f"{row['share']:g}", decimal(row["fitted"]), decimal(row["measured"])) for row in facts["margins"]],
        ),
        Table(
            "Recall on the samples",
            f"Had they stood among the stories, the threshold would find {found} of {len(facts['samples'])} pairs of"
            " samples.",
            ("kind", "stories", "margin", "found"),
            [
                (row["kind"], f"{row['a']} and {row['b']}", decimal(row["margin"]), "yes" if row["found"] else "no")
                for row in facts["samples"]
            ],
        ),
    ]


def _write(page: Path, facts: Facts, widest: Sequence[float], fitted: Gumbel) -> None:
    drawn = dict[str, str]()
    if can_plot():
        from neardup.insights.charts.svg import svg  # noqa: PLC0415 - it imports matplotlib

        title = "Widest margins of stories"
        drawn[title] = svg(_margins(widest, fitted, facts["threshold"]), title)
    about = (
        f"{facts['removed']:,} pairs below the threshold were removed. {facts['searched_again']:,} stories reach it; "
        "the next neardup embed searches for them again."
    )
    write_page(page, "neardup evaluation: meaning", about, plots=drawn, tables=meaning_tables(facts))


def _margins(widest: Sequence[float], fitted: Gumbel, threshold: float) -> "Callable[[Axes], None]":
    """The share of the stories that exceed a margin, as measured and by the fit."""

    def draw(axes: "Axes") -> None:
        places = np.sort(np.asarray(widest))
        axes.semilogy(places, 1 - np.arange(len(places)) / len(places), label="measured")
        grid = np.linspace(places[0], max(places[-1], threshold), 200)
        axes.semilogy(grid, -np.expm1(-np.exp(-(grid - fitted.location) / fitted.scale)), label="fitted")
        axes.axvline(threshold, linestyle="--", label="threshold")
        axes.set_ylim(1e-5, 1)
        axes.set_xlabel("margin")
        axes.set_ylabel("share of the stories")

    return draw
