"""The plots of an evaluation, as SVG to stand inside a page."""

import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter

from daemon.evaluate.edits import RATES, replaced_name
from daemon.evaluate.facts import SCORES
from daemon.evaluate.figures import ALL, Facts
from daemon.records import Kind

INCHES = (8, 3.6)
# Told apart by colour-blind eyes too, on white and on black: the middle tones of Okabe and Ito, 2008.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
BLACK = "#000000"
INK = "#010101"  # a black that is written out: what is black by default has no colour of its own in SVG
BEFORE_SVG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
UNUSED = re.compile(r"""\s*<metadata>.*?</metadata>|(?<=<g) id="[^"]*\"""", re.DOTALL)

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.2,
    "grid.color": BLACK,
    "legend.frameon": False,
}


def plots(facts: Facts) -> dict[str, str]:
    """Title -> SVG."""
    drawn: Mapping[str, Callable[[Axes], None]] = {
        "Recall against the share of words replaced": lambda axes: _rates(axes, facts["recall"]),
        "Precision and recall against the threshold": lambda axes: _thresholds(axes, facts["thresholds"]),
        "Members of the buckets that the originals stand in": lambda axes: _buckets(axes, facts["buckets"]),
    }
    return {title: _svg(draw, title) for title, draw in drawn.items()}


def _svg(draw: Callable[[Axes], None], title: str) -> str:
    with mpl.rc_context(STYLE | {"svg.hashsalt": title}):  # ids that differ from plot to plot, not from day to day
        figure = Figure(INCHES, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes)
        figure.legend(loc="outside right center")
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = UNUSED.sub("", BEFORE_SVG.sub("", out.getvalue(), count=1))
    return (
        svg.replace(INK, "currentColor")
        .replace(BLACK, "currentColor")
        .replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    )


def _rates(axes: Axes, recall: Sequence[Facts]) -> None:
    rows = {row["edit"]: row for row in recall if row["language"] == ALL}
    rates = [rate for rate in RATES if replaced_name(rate) in rows]
    for name, colour in zip((kind for kind in Kind if kind is not Kind.EXACT), COLOURS, strict=False):
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
    """A line through the shares, with a band as wide as their intervals; a place without a share is a gap."""
    values: list[Any] = [float("nan") if share["share"] is None else share["share"] for share in shares]
    axes.plot(places, values, style, color=colour, marker="o", markersize=3, label=label)
    axes.fill_between(
        places, [s["low"] for s in shares], [s["high"] for s in shares], color=colour, alpha=0.12, linewidth=0
    )


def _buckets(axes: Axes, buckets: Mapping[str, Mapping[int, int]]) -> None:
    largest = max((size for sizes in buckets.values() for size in sizes), default=1)
    edges = [2**n for n in range(largest.bit_length() + 1)]
    for (name, sizes), colour in zip(buckets.items(), COLOURS, strict=False):
        axes.hist(
            list(sizes), edges, weights=list(sizes.values()), histtype="step", color=colour, label=f"{name} buckets"
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("members")
    axes.set_ylabel("buckets")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
