"""The page of statistics: what moderators decided in the last 30 days, how fast and how alike, and what waits."""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aiohttp import web

from neardup.core.verify.tiers import kinds
from neardup.ledger import meaning_flags, moderation_statistics, now_ms, verdicts
from neardup.ledger.moderation_statistics import DAY_MS, Agreement, Waiting
from neardup.moderation.desk.pages import page, require_moderator
from neardup.moderation.desk.parts import desk_of
from neardup.moderation.interface import CURRENT
from neardup.moderation.wording import describe_duration, percent
from neardup.records import Kind, Language

DAYS = 30
MARGIN_BAND = 0.05


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of `ledger.statistics` for the last DAYS days, and for today; the days are counted from 1970."""

    days: range
    decisions: Counter[tuple[str, int]]
    waiting: Waiting | None
    agreement: Agreement
    precision: list[sqlite3.Row]
    precision_by_margin: list[sqlite3.Row]
    oldest: tuple[int, int] | None
    flagged: Counter[tuple[Language, Kind]]
    fingerprinted: int

    @property
    def moderators(self) -> list[str]:
        """The moderators who decided something, those with the most decisions first."""
        of_moderator: Counter[str] = Counter()
        for (moderator, _), n in self.decisions.items():
            of_moderator[moderator] += n
        return [moderator for moderator, _ in of_moderator.most_common()]


async def show(request: web.Request) -> web.Response:
    """GET /statistics."""
    require_moderator(request)
    now = now_ms()
    await desk_of(request).ledger.refresh_cases()
    found = await desk_of(request).ledger.read(_statistics, now)
    return page(
        request,
        "statistics.html.j2",
        found=found,
        highest=max(found.decisions.values(), default=0),
        dates={day: CURRENT.get().day(datetime.fromtimestamp(day * 86_400, UTC)) for day in found.days},
        waits=found.waiting and [_length(found.waiting.median), _length(found.waiting.ninth_decile)],
        agreeing=percent(found.agreement.agreeing / found.agreement.pairs) if found.agreement.pairs else None,
        oldest_wait=found.oldest and _length(now - found.oldest[1]),
    )


def _statistics(db: sqlite3.Connection, now: int) -> Statistics:
    today = now // DAY_MS
    since = (today - DAYS + 1) * DAY_MS
    return Statistics(
        range(today - DAYS + 1, today + 1),
        moderation_statistics.count_decisions(db, since),
        moderation_statistics.waiting_times(db, since),
        moderation_statistics.agreement(db, since),
        [row for row in verdicts.verdict_counts(db) if row["judged"] and row["kind"] in kinds()],
        meaning_flags.precision(db, MARGIN_BAND),
        moderation_statistics.oldest_open(db),
        moderation_statistics.count_flagged(db, today * DAY_MS),
        moderation_statistics.count_fingerprinted(db, today * DAY_MS),
    )


def _length(milliseconds: int) -> str:
    return describe_duration(timedelta(milliseconds=milliseconds))
