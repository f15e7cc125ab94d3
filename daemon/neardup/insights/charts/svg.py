"""Draws plots as SVG for a page, in the text colour of the page, light or dark."""

import re
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

INCHES = (8, 3.6)
# Colours that colour-blind readers can distinguish, on white and on black: the middle tones of Okabe and Ito, 2008.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#f0e442")
BLACK = "#000000"
INK = "#010101"  # nearly black, because matplotlib writes no colour for what is exactly black
BEFORE_SVG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
UNUSED = re.compile(r"""\s*<metadata>.*?</metadata>|(?<=<g) id="[^"]*\"""", re.DOTALL)

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.2,
    "grid.color": BLACK,
    "legend.frameon": False,
}


def svg(draw: Callable[[Axes], None], title: str) -> str:
    """Draw a plot with its legend beside it; `title` is its label for screen readers."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": title}):  # the ids depend on the plot alone, so the output is stable
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


def bucket_sizes(axes: Axes, buckets: Mapping[str, Mapping[int, int]]) -> None:
    """Draw a histogram of bucket sizes; `buckets` has for each name the number of buckets by number of members."""
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
