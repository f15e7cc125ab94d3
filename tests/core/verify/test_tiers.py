"""Laws of the table of tiers: one row a kind, ordered by severity, and every row complete."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Thresholds
from neardup.core.verify.tiers import (
    COPIED_WORDS,
    LANGUAGES,
    NEAR,
    PARTIAL,
    PASSAGE,
    RETOLD,
    REWRITTEN,
    SERIAL,
    SIMILAR,
    TIERS,
    TRANSLATED,
    TRANSLITERATED,
    Tier,
    find_kind,
    find_tier,
    list_kinds,
    list_kinds_of_meaning,
)
from neardup.records import Signals

shares = st.floats(0, 1)
signals = st.builds(
    Signals,
    st.integers(0, 128),
    st.booleans(),
    shares,
    shares,
    shares,
    extra=st.fixed_dictionaries({COPIED_WORDS: st.integers(0, 200)}),
)


def test_severities_ascend_and_kinds_are_distinct() -> None:
    severities = [tier.severity for tier in TIERS]
    assert severities == sorted(set(severities)), "the order of the table is the order of severity"
    every = (*list_kinds(), *list_kinds_of_meaning())
    assert len(set(every)) == len(TIERS)
    assert [find_tier(kind) for kind in every] == list(TIERS)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of match: 'telepathic'"):
        find_tier("telepathic")


@given(signals)
def test_first_tier_that_holds_gives_the_kind(measured: Signals) -> None:
    holding = [tier.kind for tier in TIERS if tier.compares == "words" and tier.holds(measured, Thresholds())]
    assert find_kind(measured, Thresholds()) == (holding[0] if holding else None)


@given(signals)
def test_stories_of_two_languages_have_no_kind_but_one(measured: Signals) -> None:
    extra = dict(measured.extra) | {LANGUAGES: 2}
    expected = TRANSLITERATED if measured.containment >= Thresholds().containment else None
    assert find_kind(replace(measured, extra=extra), Thresholds()) == expected


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.kind)
def test_each_tier_can_be_shown(tier: Tier) -> None:
    assert tier.label and tier.meaning and tier.nominated_by
    assert tier.evidence.format(hamming=3, jaccard="50 %", containment="70 %", copied_words=90, rare_words=20)


@given(signals, signals)
def test_stronger_signals_come_first_within_a_tier(first: Signals, second: Signals) -> None:
    near, similar, partial, passage = (find_tier(kind).strength for kind in (NEAR, SIMILAR, PARTIAL, PASSAGE))
    if first.hamming < second.hamming:
        assert near(first) > near(second), "fewer differing bits count before any Jaccard similarity"
    assert (similar(first) > similar(second)) == ((first.jaccard or 0) > (second.jaccard or 0))
    assert (partial(first) > partial(second)) == (first.containment > second.containment)
    assert (passage(first) > passage(second)) == (first.extra[COPIED_WORDS] > second.extra[COPIED_WORDS])


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_partial_joins_only_stories_of_similar_length_and_passage_none(longer: int, shorter: int) -> None:
    parts = dict.fromkeys((PARTIAL, TRANSLITERATED), longer <= 2 * shorter)
    joins = parts | dict.fromkeys((PASSAGE, REWRITTEN, SERIAL, TRANSLATED, RETOLD), False)
    for tier in TIERS:
        assert tier.joins_clusters(longer, shorter) == joins.get(tier.kind, True), tier.kind


def test_authors_repeat_parts_of_their_own_text() -> None:
    assert [tier.kind for tier in TIERS if tier.reuse_expected] == [
        PARTIAL,
        TRANSLITERATED,
        PASSAGE,
        REWRITTEN,
        SERIAL,
        TRANSLATED,
        RETOLD,
    ]
