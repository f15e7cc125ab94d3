"""The page of statistics shows the figures of the ledger, as text and as charts that say the same."""

import re
from collections import Counter
from contextlib import closing
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.verify.tiers import EXACT, SIMILAR
from neardup.ledger import connect, verdicts
from neardup.moderation.desk.statistics import make_chart
from neardup.records import Verdict

from tests.support.builders import flag_pair
from tests.support.desk_client import get, named_client
from tests.support.languages import TAMIL
from tests.support.verdicts import give_verdict

counted = st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), st.integers(0, 9)).map(Counter)


@given(counted, st.booleans())
def test_chart_stacks_what_is_counted(counts: Counter[tuple[str, int]], shares: bool) -> None:
    chart = make_chart(
        counts, {name: name for name in "cab"}, {column: str(column) for column in range(5)}, shares=shares
    )
    sums = [sum(counts[name, column] for name in "abc") for column in range(5)]
    assert chart.highest == max(sums) and list(chart.labels) == sorted(chart.labels, key="cab".index)
    found = {(chart.labels[bar.series], bar.column): bar.n for bar in chart.bars}
    assert Counter(found) == +counts, "what is drawn is not what is counted"
    assert dict(zip(chart.labels, chart.totals, strict=True)) == {
        name: n for name in "abc" if (n := sum(counts[name, column] for column in range(5)))
    }
    for column, whole in enumerate(sums):
        below = 100.0
        for bar in [bar for bar in chart.bars if bar.column == column]:
            assert abs(bar.height - 100 * bar.n / (whole if shares else chart.highest)) < 1e-9
            assert abs(bar.y + bar.height - below) < 1e-9, "a part does not stand on the one below"
            below = bar.y


async def test_statistics_of_an_empty_ledger(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        status, page = await get(client, "/statistics")
    assert status == 200
    for line in ("0 pairs flagged, 0 stories fingerprinted", "No case is open", "No case was decided", "No pair has a"):
        assert line in page


def parts(page: str, heading: str) -> list[tuple[str, str]]:
    """The lengths and the titles of the parts of the chart under a heading."""
    chart = page.partition(f">{heading}</h2>")[2].partition("</figure>")[0]
    return re.findall(r' (?:width="8" height|width)="([\d.]+)"(?: height="10")?><title>(.*?)</title>', chart)


async def test_statistics_of_a_day(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        with closing(connect(tmp_path / "neardup.db")) as db:
            for n in range(4):
                flag_pair(db, 2 * n, 2 * n + 1, EXACT if n else SIMILAR, language=TAMIL)
            give_verdict(db, [(0, 1), (2, 3)], Verdict.PLAGIARISM)
            give_verdict(db, [(4, 5)], Verdict.NOT_SIMILAR)
            seen = verdicts.identify_state(db, [1])
            verdicts.decide(db, [1], Verdict.REPOST, "", "<b>Binu</b>", seen)
        async with client.get("/statistics") as answer:
            markup = await answer.text()
        status, page = await get(client, "/statistics")
    assert status == 200 and "<b>Binu" not in markup
    assert "4 pairs flagged, 0 stories fingerprinted" in page
    assert 'href="/case/6">The oldest open case has waited' in page
    assert "No case was judged twice" in page
    assert "Time from the first flag to the decision of 3 cases: median" in page
    for heading, expected in (
        ("Cases opened a day, by kind", [("75.0", "Exact copy: 3"), ("25.0", "Similar stories: 1")]),
        ("Cases decided a day, by kind", [("66.67", "Exact copy: 2"), ("33.33", "Similar stories: 1")]),
        ("Cases decided a day, by moderator", [("66.67", "Asha: 2"), ("33.33", "<b>Binu</b>: 1")]),
    ):
        assert [(height, title.partition(", ")[2]) for height, title in parts(page, heading)] == expected, heading
    assert parts(page, "Flags upheld, by kind") == [
        ("50.0", "Exact copy, plagiarism: 1"),
        ("50.0", "Exact copy, not similar: 1"),
        ("100.0", "Similar stories, match with another verdict: 1"),
    ]
    figures = re.findall(r'<span class="badge \w*">([^<]+)</span></td>' + r'<td class="n"[^>]*>([^<]*)</td>' * 3, page)
    assert figures == [("Exact copy", "50\xa0%", "50\xa0%", "2"), ("Similar stories", "0\xa0%", "100\xa0%", "1")], (
        "upheld, precision, decided"
    )
