"""Self-checks: the stories that canaries and audits draw, what they found, and how it compares with the month before.

A self-check takes copies that should be found, and counts those that are.  Copies of one story are found or missed
together.  The intervals therefore count each story once, with the share of its copies that was found: the variance of
such a mean is at most that of as many independent copies.
"""

import random
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from neardup.core.intervals import Share, estimate_share
from neardup.ledger import dump_list, languages, transaction
from neardup.ledger.versions import NEXT_TO, draw_numbers
from neardup.records import Language, Story

ALL = "all"  # languages or subjects together
MONTH_MS = 30 * 24 * 3_600_000
KEPT_MS = 400 * 24 * 3_600_000
# So wide that chance alone separates two intervals less than once in a million: a night has about twenty comparisons.
ALARM_Z = 4.0
ROWS_AT_ONCE = 5_000
MOST_LISTED = 100_000  # the latest stories among which the sample is drawn
DRAWN_AT_ONCE = 2_000
ROUNDS = 10  # a language with less than one story in a thousand may get fewer than wanted
Pair = tuple[int, int]  # ids, the lower first


# Recalls.


class Measure(StrEnum):
    """Who measured."""

    CANARY = "canary"
    AUDIT = "audit"


class Trial(NamedTuple):
    """A copy that should be found: the story that it is of, its edit or its tier, and whether it was found."""

    language: str
    story_id: int
    subject: str
    found: bool


class Recall(Struct, frozen=True):
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


class Compared(Struct, frozen=True):
    """A recall, its interval, and the interval of the month before it; an interval of nothing is from 0 to 1."""

    recall: Recall
    interval: Share
    month: Share

    @property
    def is_lower(self) -> bool:
        """Whether it is clearly lower than in the month before."""
        return self.interval.high < self.month.low


def sum_recalls(trials: Iterable[Trial]) -> list[Recall]:
    """The recall of each language and subject, of each of either, and of all together."""
    by_story: defaultdict[tuple[str, str], defaultdict[int, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        for language in (trial.language, ALL):
            for subject in (trial.subject, ALL):
                by_story[language, subject][trial.story_id].append(trial.found)
    return [_make_recall(*group, outcomes) for group, outcomes in sorted(by_story.items())]


def _make_recall(language: str, subject: str, outcomes: Mapping[int, list[bool]]) -> Recall:
    found, total = sum(map(sum, outcomes.values())), sum(map(len, outcomes.values()))
    shares = sum(sum(of_story) / len(of_story) for of_story in outcomes.values())
    return Recall(language, subject, found, total, shares, len(outcomes))


def record_recalls(db: sqlite3.Connection, measure: Measure, measured_at: int, recalls: Iterable[Recall]) -> None:
    """Record a measurement, and drop those that are older than KEPT_MS."""
    with transaction(db):
        db.executemany(
            "INSERT OR REPLACE INTO recalls VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (measure, measured_at, row.language, row.subject, row.found, row.total, row.stories_found, row.stories)
                for row in recalls
            ),
        )
        db.execute("DELETE FROM recalls WHERE measured_at < ?", (measured_at - KEPT_MS,))


def read_latest_recalls(db: sqlite3.Connection, measure: Measure) -> tuple[int, list[Compared]] | None:
    """When a measurement was last recorded, in milliseconds, and what it found; None if there is none."""
    (at,) = db.execute("SELECT max(measured_at) FROM recalls WHERE measure = ?", (measure,)).fetchone()
    if at is None:
        return None
    month = {
        (language, subject): estimate_share(found, stories, ALARM_Z)
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
    nothing = estimate_share(0, 0)
    return at, [
        Compared(recall, estimate_share(recall.stories_found, recall.stories, ALARM_Z), month.get(group, nothing))
        for recall in (Recall(*row) for row in rows)
        for group in [(recall.language, recall.subject)]
    ]


# What is drawn, and what is on record of it.


def draw_stories(db: sqlite3.Connection, wanted: int, words: range) -> dict[Language, list[Story]]:
    """Up to `wanted` stories of each language with a number of words in the range; works are left out.

    The cost does not depend on the number of stories.
    """
    sizes = dict(db.execute("SELECT number, stories FROM languages WHERE stories > 0"))
    name_of = languages.map_names(db)
    found: dict[int, dict[int, Story]] = {number: {} for number in sizes}
    is_small, generator = sum(sizes.values()) <= DRAWN_AT_ONCE, random.SystemRandom()
    for _ in range(1 if is_small else ROUNDS):
        where, values = ("true", ()) if is_small else (NEXT_TO, (draw_numbers(db, DRAWN_AT_ONCE),))
        rows = db.execute(f"SELECT id, language, words, path FROM stories WHERE {where}", values).fetchall()
        generator.shuffle(rows)
        for story_id, language, length, path in rows:
            if story_id >= 0 and length in words and len(found[language]) < wanted:
                found[language][story_id] = Story(story_id, name_of[language], path)
        if all(len(drawn_of) >= min(wanted, sizes[number]) for number, drawn_of in found.items()):
            break
    return {name_of[number]: list(drawn_of.values()) for number, drawn_of in found.items()}


def draw_latest(db: sqlite3.Connection, since: int, most: int) -> list[int]:
    """At most `most` ids, drawn at random, of stories that became known at or after `since` (milliseconds).

    Only the last MOST_LISTED versions are looked at, and none behind ROWS_AT_ONCE that are all older: versions are
    numbered in the order of their writing.  Works are left out.
    """
    found: list[int] = []
    below, listed = 2**63 - 1, 0
    while listed < MOST_LISTED:
        rows = db.execute(
            "SELECT number, id, known_since FROM stories WHERE number < ? ORDER BY number DESC LIMIT ?",
            (below, ROWS_AT_ONCE),
        ).fetchall()
        new = [story_id for _, story_id, known_since in rows if known_since >= since and story_id >= 0]
        if not new:
            break
        found += new
        below, listed = rows[-1][0], listed + len(rows)
    return random.SystemRandom().sample(found, min(most, len(found)))


class OnRecord(StrEnum):
    """What the ledger says of a pair."""

    FLAGGED = "flagged"
    SUPPRESSED = "suppressed"
    PENDING = "pending"
    NEAR_MISS = "near miss"


def find_on_record(db: sqlite3.Connection, pairs: Iterable[Pair]) -> dict[Pair, OnRecord]:
    """What the ledger says of each pair; those of which it says nothing are left out."""
    rows = db.execute(
        "WITH wanted AS (SELECT value ->> 0 AS a, value ->> 1 AS b FROM json_each(?))"
        " SELECT w.a, w.b, CASE"
        " WHEN EXISTS (SELECT 1 FROM flags f WHERE f.a = w.a AND f.b = w.b AND status <> 'withdrawn') THEN 'flagged'"
        " WHEN EXISTS (SELECT 1 FROM suppressed_pairs s WHERE s.a = w.a AND s.b = w.b) THEN 'suppressed'"
        " ELSE (SELECT iif(verified_at IS NULL, 'pending', 'near miss') FROM candidates c"
        " WHERE c.a = w.a AND c.b = w.b) END FROM wanted w",
        (dump_list(pairs),),
    )
    return {(a, b): OnRecord(state) for a, b, state in rows if state is not None}


def has_matches_left_out(db: sqlite3.Connection, story_id: int) -> bool:
    """Whether a story has more than max_matches matches with lower ids."""
    found = db.execute("SELECT 1 FROM stories JOIN crowded_stories USING (number) WHERE id = ? AND is_cut", (story_id,))
    return found.fetchone() is not None
