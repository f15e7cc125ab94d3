"""The page of statistics: what moderators decided in the last 30 days and how fast, how alike they judge, what waits.

Its charts are made here, as the rectangles of an SVG image with a legend; a table below each has its figures.
"""

import sqlite3
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from aiohttp import web
from msgspec import Struct

from neardup.core.verify.tiers import find_tier, list_kinds
from neardup.ledger import Row, cases, meaning_flags, now_ms, story_rows, verdicts
from neardup.ledger.cases import DAY_MS, Waiting
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import get_desk
from neardup.moderation.evidence.story_report import COLOURS
from neardup.moderation.interface import CURRENT, gettext, translate_later
from neardup.moderation.wording import describe_duration, name_verdict
from neardup.records import DECIDING, Kind, Language, ShownId, Verdict

DAYS = 30
MARGIN_BAND = 0.05
N = TypeVar("N", bound=Hashable)
MATCHES_ALL_THE_SAME = translate_later("match with another verdict")


class Bar(Struct, frozen=True):
    """A part of a column: `n` of a series, at `y` from the top with a height, both in percent of the chart."""

    column: int
    y: float
    height: float
    series: int
    n: int


class Chart(Struct, frozen=True):
    """Stacked columns: the `labels` of the series, the `heads` of the columns, and `counts` by series and by column.

    A column is as high as its sum, of which `highest` is the largest; with `shares`, every column is as high as the
    chart.
    """

    labels: tuple[str, ...]
    heads: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    shares: bool = False

    @property
    def highest(self) -> int:
        return max(map(sum, zip(*self.counts, strict=True)), default=0)

    @property
    def totals(self) -> tuple[int, ...]:
        return tuple(map(sum, self.counts))

    @property
    def bars(self) -> list[Bar]:
        """The parts of all columns that are not empty, the first series at the bottom."""
        found = []
        for column, counted in enumerate(zip(*self.counts, strict=True)):
            whole, below = sum(counted) if self.shares else self.highest, 0
            for series, n in enumerate(counted):
                below += n
                if n:
                    found.append(Bar(column, 100 * (whole - below) / whole, 100 * n / whole, series, n))
        return found

    @staticmethod
    def colour(series: int) -> int:
        """The colour of a series, as of the sources of a story: one each for the first ones, and 0 for all others."""
        return series + 1 if series < COLOURS else 0


def make_chart(
    counts: Mapping[tuple[N, int], int], labels: Mapping[N, str], heads: Mapping[int, str], *, shares: bool = False
) -> Chart:
    """The chart of counts by series and column, with the series that count something in the order of their labels."""
    shown = [name for name in labels if any(counts.get((name, column)) for column in heads)]
    return Chart(
        tuple(labels[name] for name in shown),
        tuple(heads.values()),
        tuple(tuple(counts.get((name, column), 0) for column in heads) for name in shown),
        shares,
    )


class Statistics(Struct, frozen=True):
    """The figures of the last DAYS days, of today, and of all verdicts; the days are counted from 1970."""

    days: range
    opened: Counter[tuple[Kind, int]]
    decided: Counter[tuple[Kind, str, int]]
    waiting: Waiting | None
    judged_twice: Counter[tuple[Verdict, Verdict]]
    precision: list[Row]
    precision_by_margin: list[Row]
    oldest: tuple[ShownId, int] | None
    flagged: Counter[tuple[Language, Kind]]
    fingerprinted: int


async def show(request: web.Request) -> web.Response:
    """GET /statistics."""
    require_moderator(request)
    now = now_ms()
    await get_desk(request).ledger.refresh_cases()
    found = await get_desk(request).ledger.read(_read_statistics, now)
    heads = {day: CURRENT.get().day(datetime.fromtimestamp(day * 86_400, UTC)) for day in found.days}
    names = {kind: gettext(find_tier(kind).label) for kind in list_kinds()}
    by_kind, by_moderator = Counter[tuple[Kind, int]](), Counter[tuple[str, int]]()
    busiest = Counter[str]()
    for (kind, moderator, day), n in found.decided.items():
        by_kind[kind, day] += n
        by_moderator[moderator, day] += n
        busiest[moderator] += n
    return render_page(
        request,
        "statistics.html.j2",
        found=found,
        opened=make_chart(found.opened, names, heads),
        decided=make_chart(by_kind, names, heads),
        by_moderator=make_chart(by_moderator, {name: name for name, _ in busiest.most_common()}, heads),
        upheld=_make_verdict_chart(found.precision, names),
        waiting=found.waiting,
        waits=found.waiting and [_format_length(found.waiting.median), _format_length(found.waiting.ninth_decile)],
        agreeing=sum(n for (first, second), n in found.judged_twice.items() if first == second),
        kappa=verdicts.compute_kappa(found.judged_twice),
        verdicts=[verdict for verdict in DECIDING if any(verdict in both for both in found.judged_twice)],
        oldest_wait=found.oldest and _format_length(now - found.oldest[1]),
    )


def _read_statistics(db: sqlite3.Connection, now: int) -> Statistics:
    today = now // DAY_MS
    since = (today - DAYS + 1) * DAY_MS
    oldest = cases.find_oldest_open(db)
    return Statistics(
        range(today - DAYS + 1, today + 1),
        cases.count_opened(db, since),
        cases.count_decided(db, since),
        cases.measure_waiting(cases.list_waits(db, since)),
        verdicts.count_judged_twice(db),
        [row for row in verdicts.count_verdicts(db) if row["judged"] and row["kind"] in list_kinds()],
        meaning_flags.count_verdicts(db, MARGIN_BAND),
        oldest and (story_rows.read_shown_ids(db, oldest[:1])[oldest[0]], oldest[1]),
        cases.count_flagged(db, today * DAY_MS),
        cases.count_fingerprinted(db, today * DAY_MS),
    )


def _make_verdict_chart(rows: Sequence[Row], names: Mapping[Kind, str]) -> Chart:
    """How the decided pairs of each kind were judged: a column a kind, of rows of `verdicts.count_verdicts`."""
    counts: Counter[tuple[str, int]] = Counter()
    for row in rows:
        column, dismissed = list(names).index(row["kind"]), row["not_similar"]
        counts[Verdict.PLAGIARISM, column] += row["plagiarism"]
        counts[MATCHES_ALL_THE_SAME, column] += row["judged"] - row["plagiarism"] - dismissed
        counts[Verdict.NOT_SIMILAR, column] += dismissed
    labels = {
        Verdict.PLAGIARISM: name_verdict(Verdict.PLAGIARISM),
        MATCHES_ALL_THE_SAME: gettext(MATCHES_ALL_THE_SAME),
        Verdict.NOT_SIMILAR: name_verdict(Verdict.NOT_SIMILAR),
    }
    judged = {column: name for column, name in enumerate(names.values()) if any(key[1] == column for key in counts)}
    return make_chart(counts, labels, judged, shares=True)


def _format_length(milliseconds: int) -> str:
    return describe_duration(timedelta(milliseconds=milliseconds))
