"""The plots of an evaluation, as SVG for a page."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from neardup.core.verify.tiers import EXACT, kinds
from neardup.insights.charts.svg import COLOURS, INK, bucket_sizes, svg
from neardup.insights.evaluate.edits import RATES, replaced_name
from neardup.insights.evaluate.facts import SCORES
from neardup.insights.evaluate.figures import ALL, Facts


def plots(facts: Facts) -> dict[str, str]:
    """Draw the plots: SVG by title."""
    drawn: Mapping[str, Callable[[Axes], None]] = {
        "Recall against the share of words replaced": lambda axes: _rates(axes, facts["recall"]),
        "Precision and recall against the threshold": lambda axes: _thresholds(axes, facts["thresholds"]),
        "Members of the buckets that contain the originals": lambda axes: bucket_sizes(axes, facts["buckets"]),
    }
    return {title: svg(draw, title) for title, draw in drawn.items()}


def _rates(axes: Axes, recall: Sequence[Facts]) -> None:
    rows = {row["edit"]: row for row in recall if row["language"] == ALL}
    rates = [rate for rate in RATES if replaced_name(rate) in rows]
    for name, colour in zip((kind for kind in kinds() if kind != EXACT), cycle(COLOURS), strict=False):
        _line(axes, rates, [rows[replaced_name(rate)][name] for rate in rates], colour=colour, label=name)
    _line(axes, rates, [rows[replaced_name(rate)][ALL] for rate in rates], colour=INK, label="all kinds together")
    axes.set_xlabel("words replaced")
    axes.set_ylabel("recall")
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_xticks(rates)
    axes.set_ylim(-0.02, 1.02)


def _thresholds(axes: Axes, rows: Sequence[Facts]) -> None:
    places = [row["threshold"] for row in rows]
    for score, colour in zip(SCORES, COLOURS, strict=False):
        _line(axes, places, [row[score]["recall"] for row in rows], colour=colour, label=f"recall by {score}")
        _line(
            axes,
            places,
            [row[score]["precision"] for row in rows],
            colour=colour,
            label=f"precision by {score}",
            style="--",
        )
    axes.set_xlabel("threshold")
    axes.set_ylim(-0.02, 1.02)


def _line(
    axes: Axes, places: Sequence[float], shares: Sequence[Facts], *, colour: str, label: str, style: str = "-"
) -> None:
    """Draw a line through the shares, with a band for their intervals; a missing share is a gap."""
    values: list[Any] = [float("nan") if share["share"] is None else share["share"] for share in shares]
    axes.plot(places, values, style, color=colour, marker="o", markersize=3, label=label)
    axes.fill_between(
        places, [s["low"] for s in shares], [s["high"] for s in shares], color=colour, alpha=0.12, linewidth=0
    )
