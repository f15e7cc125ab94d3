"""The wording: unknown facts are reported as unknown, and no share is rounded to 0 or 100 %."""

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import EXACT
from neardup.moderation.wording import (
    describe_duration,
    describe_overlap,
    describe_share,
    list_findings,
    list_scores,
    list_warnings,
    name_kind,
)
from neardup.query.compare import Evidence, LoadedStory, UnreadableStory, find_evidence, read_evidence
from neardup.records import format_count, format_percent

from tests.support.compared_stories import THRESHOLDS, sample, story_of
from tests.support.paths import ROOT

DAY_MS = 86_400_000
PLURAL = re.compile(
    r"(?<!of )(?<!than )(?<! to )\{(?=len\(|[^{}\n]+:,)([^{}\n:]+)[^{}\n]*\}"
    r" (?!bytes|words|of |lacked )(?:[a-z]+ )?(?:[a-z]+s|were|have)\b"
)
NEVER_ONE = {"cluster.size", "pairs[0]['cluster_size']", "len(SHIPPED)", "len(entries)", "size", "done.core_seconds"}


def facts(**changed: Any) -> Evidence:
    words = " ".join(f"w{n}" for n in range(100))
    return replace(find_evidence(story_of(f"{words} x"), story_of(f"{words} y z"), THRESHOLDS), **changed)


@given(st.floats(0, 1))
def test_shares_are_not_rounded_to_all_or_nothing(part: float) -> None:
    sentence = format_percent(part)
    assert (sentence == "100 %") == (part == 1)
    assert (sentence == "0 %") == (part == 0)
    assert abs(int(sentence.split()[0]) - 100 * part) <= 1


def test_one_thing_is_counted_in_the_singular() -> None:
    counted = [format_count(n, "story is", "stories are") for n in (0, 1, 2, 1_000)]
    assert counted == ["0 stories are", "1 story is", "2 stories are", "1,000 stories are"]


def test_no_plural_follows_a_number_that_may_be_one() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sorted((ROOT / "daemon").rglob("*.py"))
        for found in PLURAL.finditer(path.read_text(encoding="utf-8"))
        if found[1] not in NEVER_ONE and not found[1].isupper()
    ]
    assert not wrong, "write these with format_count"


@pytest.mark.parametrize(
    ("length", "sentence"),
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
def test_durations_in_words(length: timedelta, sentence: str) -> None:
    assert describe_duration(length) == sentence


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=40_000)))
def test_durations_are_never_overstated(length: timedelta) -> None:
    days = {"years": 365, "months": 30, "days": 1, "hours": 1 / 24, "minutes": 1 / 1440, "seconds": 1 / 86400}
    number, _, unit = describe_duration(length).partition(" ")
    if unit in days:
        claimed = timedelta(days=int(number.replace(",", "")) * days[unit])
        assert claimed <= length + timedelta(milliseconds=1) and length < claimed * 1.5 + timedelta(milliseconds=1)


def test_headline_has_both_shares() -> None:
    found = facts(share_a=0.81, share_b=0.12)
    assert describe_overlap(found) == "81 % of A is also in B; 12 % of B is also in A"
    assert (describe_share(found, "a"), describe_share(found, "b")) == (
        "81 % of this story is also in the other",
        "12 % of this story is also in the other",
    )
    assert describe_overlap(facts(kind=EXACT, share_a=1, share_b=1)) == "Every word of each story is also in the other"


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ((0, 3 * DAY_MS), "A was published 3 days before B, by the listing"),
        ((DAY_MS, 0), "B was published 24 hours before A, by the listing"),
        ((5, 5), "The order of publication is not known: the listing gives both the same date"),
        ((None, 5), "The order of publication is not known: the listing has no date of A"),
    ],
)
def test_findings_state_the_order_of_publication(times: tuple[int | None, int | None], sentence: str) -> None:
    a, b = (story_of("one two three four", published_at=time) for time in times)
    assert sentence in list_findings(find_evidence(a, b, THRESHOLDS))


@pytest.mark.parametrize(
    ("same", "sentence"),
    [
        (True, "The same author wrote both"),
        (False, "Two different authors wrote them"),
        (None, "It is not known whether the same author wrote both"),
    ],
)
def test_findings_state_whether_the_author_is_the_same(same: bool | None, sentence: str) -> None:
    assert sentence in list_findings(facts(same_author=same))


@pytest.mark.parametrize(
    ("words", "shown"), [(2, "w0, w1"), (22, f"{', '.join(f'w{n}' for n in range(20))} and 2 more")]
)
def test_findings_name_the_rare_words_of_a_rewriting(words: int, shown: str) -> None:
    found = facts(rare_words=tuple(f"w{n}" for n in range(words)))
    assert f"Rare words in the same order: {shown}" in list_findings(found)


def test_changed_page_gives_a_warning() -> None:
    assert list_warnings(facts()) == []
    changed = story_of("one two three four", text_hash=b"other")
    [sentence] = list_warnings(find_evidence(changed, story_of("one two three four"), THRESHOLDS))
    assert sentence.startswith("The page of A has changed since")


@pytest.mark.parametrize("exchanged", [False, True])
def test_unavailable_text_is_described_from_the_ledger(exchanged: bool) -> None:
    flag = {"story_id": 2, "matched_id": 1, "kind": "partial", "hamming": 40, "jaccard": 0.2, "estimated": 1}
    flag |= {"containment": 0.8, "matched_containment": 0.3, "longest_run_words": None}
    here: LoadedStory | UnreadableStory = LoadedStory(Text("text"), {"id": 1, "published_at": 0, "author_id": "7"})
    gone: LoadedStory | UnreadableStory = UnreadableStory(
        {"id": 2, "published_at": DAY_MS, "author_id": "7"}, "its page is gone: x"
    )
    a, b = (gone, here) if exchanged else (here, gone)
    found = read_evidence(a, b, flag)
    first, second = ("80", "30") if exchanged else ("30", "80")
    assert describe_overlap(found) == f"About {first} % of A's word pairs are also in B; {second} % of B's in A"
    letter = "A" if exchanged else "B"
    assert list_warnings(found)[1] == f"The text of {letter} is no longer available (its page is gone: x)"
    assert f"{'B' if exchanged else 'A'} was published 24 hours before {letter}, by the listing" in list_findings(found)
    assert "The same author wrote both" in list_findings(found)
    assert (describe_share(found, "a"), name_kind(found)) == (None, "Partial copy")
    assert ("SimHash", "40 of 128 bits differ") in list_scores(found)


def test_unflagged_pair_without_text_has_no_figures() -> None:
    found = read_evidence(story_of("one two", id=1), UnreadableStory({"id": 2}, "gone"), None)
    assert describe_overlap(found) == "The overlap is not known"
    assert (list_scores(found), name_kind(found)) == ([], "Not flagged")
    assert (
        name_kind(find_evidence(sample(4107000), sample(4107001), THRESHOLDS))
        == "Not a copy by the configured thresholds"
    )
