"""Figures in words: nothing is said that is not known, and no share is rounded to all or nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.moderation.wording import findings, headline, kind, percent, scores, share, span, warnings
from neardup.query.evidence import Evidence, WithoutText, WithText, evidence, evidence_on_record

from tests.support.compared_stories import THRESHOLDS, sample, with_text

DAY_MS = 86_400_000


def facts(**changed: Any) -> Evidence:
    words = " ".join(f"w{n}" for n in range(100))
    return replace(evidence(with_text(f"{words} x"), with_text(f"{words} y z"), THRESHOLDS), **changed)


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_nothing_is_nothing(part: float) -> None:
    said = percent(part)
    assert (said == "100 %") == (part == 1)
    assert (said == "0 %") == (part == 0)
    assert abs(int(said.split()[0]) - 100 * part) <= 1


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (timedelta(milliseconds=900), "less than a second"),
        (timedelta(seconds=1), "a second"),
        (timedelta(seconds=100), "100 seconds"),
        (timedelta(minutes=2), "2 minutes"),
        (timedelta(hours=47), "47 hours"),
        (timedelta(days=3), "3 days"),
        (timedelta(days=61), "2 months"),
        (timedelta(days=365 * 20), "20 years"),
    ],
)
def test_lengths_of_time(length: timedelta, said: str) -> None:
    assert span(length) == said


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=40_000)))
def test_no_length_of_time_is_said_to_be_longer_than_it_is(length: timedelta) -> None:
    days = {"years": 365, "months": 30, "days": 1, "hours": 1 / 24, "minutes": 1 / 1440, "seconds": 1 / 86400}
    number, _, unit = span(length).partition(" ")
    if unit in days:
        said = timedelta(days=int(number.replace(",", "")) * days[unit])
        assert said <= length + timedelta(milliseconds=1) and length < said * 1.5 + timedelta(milliseconds=1)


def test_shares_are_said_both_ways() -> None:
    found = facts(share_a=0.81, share_b=0.12)
    assert headline(found) == "81 % of A stands in B; 12 % of B stands in A"
    assert (share(found, "a"), share(found, "b")) == (
        "81 % of this story stands in the other",
        "12 % of this story stands in the other",
    )
    assert headline(facts(share_a=1, share_b=1)) == "Every word of either story stands in the other"


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((0, 3 * DAY_MS), "A was published 3 days before B"),
        ((DAY_MS, 0), "B was published 24 hours before A"),
        ((5, 5), "Both were published at the same time"),
        ((None, 5), "Which was published first is not known"),
    ],
)
def test_who_was_first_and_by_how_much(times: tuple[int | None, int | None], said: str) -> None:
    a, b = (with_text("one two three four", published_at=time) for time in times)
    assert said in findings(evidence(a, b, THRESHOLDS))


@pytest.mark.parametrize(
    ("same", "said"),
    [
        (True, "The same author wrote both"),
        (False, "Two different authors wrote them"),
        (None, "Whether one author wrote both is not known"),
    ],
)
def test_authors(same: bool | None, said: str) -> None:
    assert said in findings(facts(same_author=same))


def test_doubts_are_said_where_there_are_any() -> None:
    assert warnings(facts()) == []
    changed = with_text("one two three four", text_hash=b"other")
    [said] = warnings(evidence(changed, with_text("one two three four"), THRESHOLDS))
    assert said.startswith("The page of A has changed since")


@pytest.mark.parametrize("exchanged", [False, True])
def test_of_a_story_that_is_gone_what_the_ledger_knows_is_said(exchanged: bool) -> None:
    flag = {"story_id": 2, "matched_id": 1, "kind": "partial", "hamming": 40, "jaccard": 0.2, "estimated": 1}
    flag |= {"containment": 0.8, "matched_containment": 0.3, "longest_run_words": None}
    here: WithText | WithoutText = WithText("text", [b"text"], {"id": 1, "published_at": 0, "author_id": "7"})
    gone: WithText | WithoutText = WithoutText(
        {"id": 2, "published_at": DAY_MS, "author_id": "7"}, "its page is gone: x"
    )
    a, b = (gone, here) if exchanged else (here, gone)
    found = evidence_on_record(a, b, flag)
    first, second = ("80", "30") if exchanged else ("30", "80")
    assert headline(found) == f"About {first} % of A's word pairs stand in B; {second} % of B's in A"
    letter = "A" if exchanged else "B"
    assert warnings(found)[1] == f"The text of {letter} is not to be had any more (its page is gone: x)"
    assert f"{'B' if exchanged else 'A'} was published 24 hours before {letter}" in findings(found)
    assert "The same author wrote both" in findings(found)
    assert (share(found, "a"), kind(found)) == (None, "Partial copy")
    assert ("SimHash", "40 of 128 bits differ") in scores(found)


def test_of_a_pair_that_was_never_flagged_nothing_is_made_up() -> None:
    found = evidence_on_record(with_text("one two", id=1), WithoutText({"id": 2}, "gone"), None)
    assert headline(found) == "How much of either stands in the other is not known"
    assert (scores(found), kind(found)) == ([], "Not flagged")
    assert kind(evidence(sample(4107000), sample(4107001), THRESHOLDS)) == "No copy by the configured thresholds"
