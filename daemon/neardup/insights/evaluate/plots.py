"""The plots of an evaluation, as SVG for a page."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from neardup.core.verify.tiers import EXACT, kinds
from neardup.insights.charts.svg import COLOURS, INK, bucket_sizes, svg
from neardup.insights.evaluate.copies import SCORES
from neardup.insights.evaluate.edits import CHAPTERS, RATES, RUNS, chapter_name, replaced_name, run_name
from neardup.insights.evaluate.tables import ALL, Facts


def plots(facts: Facts) -> dict[str, str]:
    """Draw the plots that have data: SVG by title."""
    rows = {row["edit"]: row for row in facts["recall"] if row["language"] == ALL}
    runs = {length: run_name(length) for length in RUNS}
    chapters = {number: chapter_name(number) for number in CHAPTERS}
    drawn: Mapping[str, tuple[object, Callable[[Axes], None]]] = {
        "Recall against the share of words replaced": (rows, lambda axes: _rates(axes, rows)),
        "Recall against the length of a copied run": (
            rows.keys() & runs.values(),
            lambda axes: _lengths(axes, rows),
        ),
        "Recall of a chapter against the chapters of the work": (
            rows.keys() & chapters.values(),
            lambda axes: _by_kind(axes, rows, chapters, "chapters of the work"),
        ),
        "Precision and recall against the threshold": (
            facts["thresholds"],
            lambda axes: _thresholds(axes, facts["thresholds"]),
        ),
        "Members of the buckets that contain the originals": (
            facts["buckets"],
            lambda axes: bucket_sizes(axes, facts["buckets"]),
        ),
    }
    return {title: svg(draw, title) for title, (data, draw) in drawn.items() if data}


def _rates(axes: Axes, rows: Mapping[str, Facts]) -> None:
    _by_kind(axes, rows, {rate: replaced_name(rate) for rate in RATES}, "words replaced")
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))


def _by_kind(axes: Axes, rows: Mapping[str, Facts], names: Mapping[Any, str], label: str) -> None:
    """Draw the recall of the copies with these names, by their places on the axis, as each kind and as any."""
    known = {place: rows[name] for place, name in names.items() if name in rows}
    for kind, colour in zip((kind for kind in kinds() if kind != EXACT), cycle(COLOURS), strict=False):
        _line(axes, list(known), [row[kind] for row in known.values()], colour=colour, label=kind)
    _line(axes, list(known), [row[ALL] for row in known.values()], colour=INK, label="all kinds together")
    _label_recall(axes, list(known), label)


def _lengths(axes: Axes, rows: Mapping[str, Facts]) -> None:
    for edited, colour in zip((False, True), COLOURS, strict=False):
        known = {n: rows[name][ALL] for n in RUNS if (name := run_name(n, edited=edited)) in rows}
        label = "every tenth word replaced" if edited else "word for word"
        _line(axes, list(known), list(known.values()), colour=colour, label=label)
    _label_recall(axes, [n for n in RUNS if run_name(n) in rows], "words copied")


def _label_recall(axes: Axes, places: Sequence[float], label: str) -> None:
    axes.set_xlabel(label)
    axes.set_ylabel("recall")
    axes.set_xticks(places)
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
