"""The plots of the report."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from neardup.config import Detection, Thresholds
from neardup.core.verify.tiers import kinds
from neardup.insights.charts.svg import COLOURS, INK, bucket_sizes, svg
from neardup.insights.report.facts import BINS, Facts, PairCounts

DAYS = 90  # the plot shows at most the last 90 days
BITS = 64  # unrelated texts differ in about half of the 128 bits
TICKS = 7  # labelled days
LABELS = ("flagged", "near misses")
LINE: dict[str, Any] = {"color": INK, "linewidth": 1, "linestyle": "--"}


def plots(facts: Facts, detection: Detection) -> dict[str, str]:
    """Draw the plots that have data: SVG by title."""
    hamming, jaccard, containment = facts.hamming, facts.scores["jaccard"], facts.scores["containment"]
    drawn: dict[str, tuple[object, Callable[[Axes], None]]] = {
        "Flags by day": (facts.days, lambda axes: _days(axes, facts.days)),
        "Flags by language": (facts.kinds, lambda axes: _languages(axes, facts.kinds)),
        "Differing bits of the SimHash": (_any(hamming), lambda axes: _bits(axes, hamming, detection)),
        "Jaccard similarity": (
            _any(jaccard),
            lambda axes: _scores(axes, jaccard, detection, "jaccard", "Jaccard similarity of the word pairs"),
        ),
        "Containment, the larger way": (
            _any(containment),
            lambda axes: _scores(axes, containment, detection, "containment", "share of one story's word pairs"),
        ),
        "Members of a bucket": (any(facts.buckets.values()), lambda axes: bucket_sizes(axes, facts.buckets)),
        "Latency of the stages": (facts.stages, lambda axes: _latencies(axes, facts.stages)),
    }
    return {title: svg(draw, title) for title, (data, draw) in drawn.items() if data}


def _any(counts: PairCounts) -> bool:
    return bool(counts.flagged or counts.near_misses)


def _days(axes: Axes, counted: Mapping[tuple[str, str], int]) -> None:
    """Draw a bar for each day, from the first day with a flag to the last."""
    last = date.fromisoformat(max(day for day, _ in counted))
    first = max(date.fromisoformat(min(day for day, _ in counted)), last - timedelta(days=DAYS - 1))
    days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    _stacked(axes, days, counted)
    axes.set_xticks(range(0, len(days), len(days) // TICKS + 1), days[:: len(days) // TICKS + 1])
    axes.set_xlim(-1, max(len(days), TICKS))
    axes.set_xlabel("day, UTC")


def _languages(axes: Axes, counted: Mapping[tuple[str, str], int]) -> None:
    languages = sorted({language for language, _ in counted})
    _stacked(axes, languages, counted)
    axes.set_xticks(range(len(languages)), [language.capitalize() for language in languages], fontsize=8)


def _stacked(axes: Axes, names: list[str], counted: Mapping[tuple[str, str], int]) -> None:
    below = [0] * len(names)
    for kind, colour in zip(kinds(), cycle(COLOURS), strict=False):
        counts = [counted.get((name, kind), 0) for name in names]
        axes.bar(range(len(names)), counts, bottom=below, color=colour, label=kind, width=0.8)
        below = [a + b for a, b in zip(below, counts, strict=True)]
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _label_counts(axes)


def _bits(axes: Axes, counts: PairCounts, detection: Detection) -> None:
    _side_by_side(axes, {label: _up_to(counted, BITS) for label, counted in zip(LABELS, counts, strict=True)}, 1)
    for n, limit in enumerate(_thresholds(detection, "hamming")):
        axes.axvline(limit + 0.5, **LINE, label=None if n else "threshold of near")
    axes.set_xlim(-0.5, BITS + 0.5)
    axes.set_xlabel("bits of 128")


def _up_to(counted: Mapping[int, int], most: int) -> dict[float, int]:
    return {n: pairs for n, pairs in counted.items() if n <= most}


def _scores(axes: Axes, counts: PairCounts, detection: Detection, name: str, label: str) -> None:
    middles = [{(n + 0.5) / BINS: pairs for n, pairs in counted.items()} for counted in counts]
    _side_by_side(axes, dict(zip(LABELS, middles, strict=True)), 1 / BINS)
    for n, limit in enumerate(_thresholds(detection, name)):
        axes.axvline(limit, **LINE, label=None if n else f"threshold of {name}")
    axes.set_xlim(0, 1)
    axes.set_xlabel(label)


def _side_by_side(axes: Axes, series: Mapping[str, Mapping[float, int]], width: float) -> None:
    """Draw two series of bars of half the width, side by side."""
    for (label, counted), colour, offset in zip(series.items(), COLOURS, (-0.25, 0.25), strict=False):
        if counted:
            places = [place + offset * width for place in counted]
            axes.bar(places, list(counted.values()), width / 2, color=colour, label=label)
    axes.set_yscale("symlog", linthresh=10)
    _label_counts(axes)


def _thresholds(detection: Detection, name: str) -> list[float]:
    """The distinct values of a threshold over all languages, the common one first."""
    every: list[Thresholds] = [detection, *detection.languages.values()]
    return list(dict.fromkeys(getattr(one, name) for one in every))


def _label_counts(axes: Axes) -> None:
    axes.set_ylabel("pairs")
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _latencies(axes: Axes, stages: Mapping[str, Mapping[str, float]]) -> None:
    """Draw a line for each stage from its median to its 99th percentile."""
    names = list(stages)[::-1]
    for name, colour, label in zip(("p50", "p95", "p99"), COLOURS, ("median", "95 %", "99 %"), strict=False):
        axes.plot([1000 * stages[stage][name] for stage in names], names, "o", color=colour, label=label)
    for stage in names:
        axes.plot(
            [1000 * stages[stage][end] for end in ("p50", "p99")], [stage, stage], color=INK, linewidth=0.8, zorder=0
        )
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds, for a story (fetch, extract, fingerprint) or a batch (the other stages)")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
