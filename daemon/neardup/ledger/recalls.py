"""What the self-checks measured of the live index, and how it compares with the month before.

Copies of one story are found or missed together.  The intervals therefore count each story once, with the share of its
copies that was found: the variance of such a mean is at most that of as many independent copies.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from neardup.core.intervals import Share, share
from neardup.ledger import transaction

ALL = "all"  # languages or subjects together
MONTH_MS = 30 * 24 * 3_600_000
KEPT_MS = 400 * 24 * 3_600_000
# So wide that chance alone separates two intervals less than once in a million: a night has about twenty comparisons.
ALARM_Z = 4.0


class Measure(StrEnum):
    """Who measured."""

    CANARY = "canary"
    AUDIT = "audit"


class Tried(NamedTuple):
    """A copy that should be found: the story that it is of, its edit or its tier, and whether it was found."""

    language: str
    story_id: int
    subject: str
    found: bool


@dataclass(frozen=True, slots=True)
class Recall:
    """How many of some copies were found; see the table `recalls` for the fields."""

    language: str
    subject: str
    found: int
    total: int
    stories_found: float
    stories: int

    @property
    def share(self) -> float:
        """The share of the copies that was found."""
        return self.found / self.total


@dataclass(frozen=True, slots=True)
class Compared:
    """A recall, its interval, and the interval of the month before it; an interval of nothing is from 0 to 1."""

    recall: Recall
    interval: Share
    month: Share

    @property
    def is_lower(self) -> bool:
        """Whether it is clearly lower than in the month before."""
        return self.interval.high < self.month.low


def sum_recalls(tried: Iterable[Tried]) -> list[Recall]:
    """The recall of each language and subject, of each of either, and of all together."""
    by_story: defaultdict[tuple[str, str], defaultdict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for one in tried:
        for language in (one.language, ALL):
            for subject in (one.subject, ALL):
                by_story[language, subject][one.story_id].append(one.found)
    return [_recall(*group, outcomes) for group, outcomes in sorted(by_story.items())]


def _recall(language: str, subject: str, outcomes: Mapping[int, list[bool]]) -> Recall:
    found, total = sum(map(sum, outcomes.values())), sum(map(len, outcomes.values()))
    shares = sum(sum(some) / len(some) for some in outcomes.values())
    return Recall(language, subject, found, total, shares, len(outcomes))


def record_recalls(db: sqlite3.Connection, measure: Measure, measured_at: int, recalls: Iterable[Recall]) -> None:
    """Record a measurement, and drop those that are older than KEPT_MS."""
    with transaction(db):
        db.executemany(
            "INSERT OR REPLACE INTO recalls VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (measure, measured_at, one.language, one.subject, one.found, one.total, one.stories_found, one.stories)
                for one in recalls
            ),
        )
        db.execute("DELETE FROM recalls WHERE measured_at < ?", (measured_at - KEPT_MS,))


def latest_recalls(db: sqlite3.Connection, measure: Measure) -> tuple[int, list[Compared]] | None:
    """When a measurement was last recorded, in milliseconds, and what it found; None if there is none."""
    (at,) = db.execute("SELECT max(measured_at) FROM recalls WHERE measure = ?", (measure,)).fetchone()
    if at is None:
        return None
    month = {
        (language, subject): share(found, stories, ALARM_Z)
        for language, subject, found, stories in db.execute(
            "SELECT language, subject, sum(stories_found), sum(stories) FROM recalls"
            " WHERE measure = ? AND measured_at >= ? AND measured_at < ? GROUP BY language, subject",
            (measure, at - MONTH_MS, at),
        )
    }
    rows = db.execute(
        "SELECT language, subject, found, total, stories_found, stories FROM recalls"
        " WHERE measure = ? AND measured_at = ? ORDER BY language, subject",
        (measure, at),
    )
    nothing = share(0, 0)
    return at, [
        Compared(one, share(one.stories_found, one.stories, ALARM_Z), month.get((one.language, one.subject), nothing))
        for one in (Recall(*row) for row in rows)
    ]
