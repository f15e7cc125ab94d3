"""Compares what the texts of the last runs were like, by language, with the runs before them.

The runs before give a band: their median, and around it BAND times the spread of the runs and the error of the reading
itself, but at least the measure's floor.  The spread is the median absolute deviation from the median, scaled to a
standard deviation (Rousseeuw and Croux 1993), which single runs that left the band do not widen.
"""

import json
import sqlite3
from collections.abc import Sequence
from enum import StrEnum
from math import hypot, sqrt
from typing import NamedTuple, Self

from msgspec import Struct

from neardup.records import Language

MIN_STORIES = 100  # of a language in a run; the means of fewer vary too much
MIN_RUNS = 5  # with so many, before there is a band
RUNS = 14  # that give the band: a change that stays is the new band after a week of daily runs
RUNS_READ = 60
BAND = 5.0
TO_STANDARD_DEVIATION = 1.4826


class Measure(StrEnum):
    """What is measured of the texts.  The value is a metric label."""

    TOKENS = "tokens"  # words a visible character
    SIGNS = "signs"  # vowel signs and viramas a visible character
    REPLACED = "replaced"  # the share of the stories with replacement characters
    HIDDEN = "hidden"  # the share of a page's characters that a browser does not show
    OTHER_SCRIPT = "other_script"  # the share of the stories most of whose letters are not of the language's script
    SHINGLES = "shingles"  # distinct shingles a story
    EMPTY = "empty"  # the share of the pages read that have no story

    @property
    def is_share(self) -> bool:
        return self not in {Measure.TOKENS, Measure.SHINGLES}


# A smaller distance from the median is no change: of shares as it is, of the others as a part of the median.
SHARE_FLOOR = 0.03
FLOORS = {Measure.TOKENS: 0.05, Measure.SHINGLES: 0.1}


class Reading(NamedTuple):
    """A measure in a run: its mean over `stories`, and the standard error of the mean."""

    stories: int
    mean: float
    error: float

    @classmethod
    def of(cls, stories: int, total: float, squares: float) -> Self:
        """From the sum of the values and that of their squares."""
        mean = total / max(1, stories)
        variance = max(0.0, squares / max(1, stories) - mean * mean)
        return cls(stories, round(mean, 5), round(sqrt(variance / max(1, stories)), 5))


class Compared(Struct, frozen=True):
    """The last reading of a measure, and the band of the runs before; None while these are too few."""

    language: Language
    measure: Measure
    run_id: int
    mean: float
    band: tuple[float, float] | None

    @property
    def is_unusual(self) -> bool:
        return self.band is not None and not self.band[0] <= self.mean <= self.band[1]

    def __str__(self) -> str:
        low, high = self.band or (0.0, 0.0)
        mean, least, most = map(_format_figure, (self.mean, low, high))
        return f"{self.language}: {self.measure} {mean}, usually {least} to {most}"


def list_latest(db: sqlite3.Connection) -> list[Compared]:
    """The last reading of each language and measure with enough stories, by language, compared with those before."""
    rows = db.execute(
        "SELECT run_id, counts ->> '$.health' FROM runs WHERE command IN ('backfill', 'daily')"
        " AND status IN ('done', 'stopped') AND counts ->> '$.health' IS NOT NULL ORDER BY run_id DESC LIMIT ?",
        (RUNS_READ,),
    )
    found: dict[tuple[str, str], list[tuple[int, Reading]]] = {}
    for run_id, health in rows:
        for language, readings in json.loads(health).items():
            for measure, reading in readings.items():
                if reading[0] >= MIN_STORIES:
                    found.setdefault((language, measure), []).append((run_id, Reading(*reading)))
    compared = []
    for (language, measure), ((run_id, last), *rest) in sorted(found.items()):
        band = compute_band(Measure(measure), last, [reading.mean for _, reading in rest[:RUNS]])
        compared.append(Compared(Language(language), Measure(measure), run_id, last.mean, band))
    return compared


def list_unusual(db: sqlite3.Connection) -> list[Compared]:
    """The last readings that are outside their bands."""
    return [compared for compared in list_latest(db) if compared.is_unusual]


def list_unusual_in_last_run(db: sqlite3.Connection) -> list[Compared]:
    """As `list_unusual`, of the last run alone."""
    (last,) = db.execute("SELECT max(run_id) FROM runs").fetchone()
    return [compared for compared in list_unusual(db) if compared.run_id == last]


def compute_band(measure: Measure, reading: Reading, before: Sequence[float]) -> tuple[float, float] | None:
    """The band in which this reading is usual, after runs with these means; None for fewer than MIN_RUNS."""
    if len(before) < MIN_RUNS:
        return None
    from statistics import median  # noqa: PLC0415 - its import takes longer than many commands may

    middle = median(before)
    spread = TO_STANDARD_DEVIATION * median(abs(mean - middle) for mean in before)
    floor = SHARE_FLOOR if measure.is_share else FLOORS[measure] * middle
    half = max(floor, BAND * hypot(spread, reading.error))
    return max(0.0, middle - half), middle + half


def _format_figure(mean: float) -> str:
    return f"{mean:.3g}" if mean < 1000 else f"{mean:,.0f}"
