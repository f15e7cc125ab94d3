"""Laws: scores are what sets of word pairs give, one by one; a pair gets the first kind that holds; where a text is
gone the signatures speak, and the finding says so.
"""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.text.normalize import tokens
from neardup.core.verify.longest_run import longest_run
from neardup.core.verify.scores import NEAR_MISS, compare, judge, kind_of, shingled
from neardup.records import Candidate, Kind, Language, Scores, Side

from tests.support.languages import ODIA, SAMPLED, TEXTS

unhurried = settings(deadline=None)
vocabulary = st.sampled_from([word for text in TEXTS.values() for word in tokens(text)][:12])
stories = st.lists(vocabulary, min_size=1, max_size=40)
scores = st.builds(Scores, *[st.floats(0, 1)] * 3, st.none())


@dataclass(frozen=True)
class Limits:
    hamming: int = 3
    jaccard: float = 0.5
    containment: float = 0.5


def word_pairs(words: list[bytes]) -> set[tuple[bytes, ...]]:
    return set(pairwise(words)) or {tuple(words)}


def run_by_run(a: list[bytes], b: list[bytes]) -> int:
    longest = 0
    for i in range(len(a)):
        for j in range(len(b)):
            n = 0
            while i + n < len(a) and j + n < len(b) and a[i + n] == b[j + n]:
                n += 1
            longest = max(longest, n)
    return longest


@unhurried
@given(stories, stories)
def test_scores_are_what_sets_of_word_pairs_give(a: list[bytes], b: list[bytes]) -> None:
    one, other = word_pairs(a), word_pairs(b)
    found = compare(shingled(a), shingled(b))
    assert found.jaccard == len(one & other) / len(one | other)
    assert found.containment_a == len(one & other) / len(one)
    assert found.containment_b == len(one & other) / len(other)
    assert not found.estimated


@unhurried
@given(stories, stories)
def test_the_longest_run_is_the_longest_common_run_of_words(a: list[bytes], b: list[bytes]) -> None:
    assert (
        longest_run(shingled(a).words, shingled(b).words)
        == run_by_run(a, b)
        == longest_run(shingled(b).words, shingled(a).words)
    )


@pytest.mark.parametrize("language", SAMPLED)
def test_a_passage_taken_over_is_the_longest_run(language: Language) -> None:
    words = [f"{word.decode()}{n}".encode() for n in range(20) for word in tokens(TEXTS[language])]
    other = [b"x" + word for word in words]
    copy = other[:30] + words[40:117] + other[60:]
    found = compare(shingled(words), shingled(copy))
    assert found.longest_run_words == 77
    assert found.containment_a == pytest.approx(76 / len(word_pairs(words)))


@given(st.integers(0, 128), st.one_of(st.none(), scores), st.integers(0, 7), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_pair_gets_the_first_kind_that_holds(
    bits: int, found: Scores | None, hamming: int, jaccard: float, containment: float
) -> None:
    holds = {
        Kind.NEAR: bits <= hamming,
        Kind.SIMILAR: found is not None and found.jaccard >= jaccard,
        Kind.PARTIAL: found is not None and max(found.containment_a, found.containment_b) >= containment,
    }
    want = next((kind for kind in Kind if holds.get(kind)), None)
    assert kind_of(bits, found, Limits(hamming, jaccard, containment)) == want


def side(story_id: int, words: list[bytes]) -> Side:
    made = fingerprint(words)
    return Side(story_id, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles)


def told(seed: str, n: int = 200) -> list[bytes]:
    return [f"{seed}{k % 150}".encode() for k in range(n)]


def finding_of(a: list[bytes], b: list[bytes], *, gone: bool = False) -> tuple[Kind | None, Scores | None] | None:
    pair = Candidate(ODIA, side(1, a), side(2, b))
    found = judge(pair, shingled(a), None if gone else shingled(b), Limits())
    return (found.kind, found.scores) if found else None


def test_each_kind_is_found_by_what_defines_it() -> None:
    story = told("a")
    assert finding_of(story, story) == (Kind.EXACT, Scores(1.0, 1.0, 1.0, 200))
    similar = finding_of(story, story[:120] + told("b", 20))
    assert similar is not None and similar[0] is Kind.SIMILAR
    partial = finding_of(story, story[:140] + told("b", 900)[:150] + told("c"))
    assert partial is not None and partial[0] is Kind.PARTIAL
    assert finding_of(story, told("c")) is None


def test_a_near_miss_is_kept_with_its_scores() -> None:
    story = told("a")
    found = finding_of(story, story[:60] + told("b", 140))
    assert found is not None and found[0] is None
    assert found[1] is not None and NEAR_MISS <= found[1].containment_a < 0.5


def test_where_a_text_is_gone_the_signatures_speak() -> None:
    story = told("a")
    copy = story[:110] + told("b", 20) + story[130:]
    found = finding_of(story, copy, gone=True)
    assert found is not None
    kind, estimate = found
    assert kind is Kind.SIMILAR
    assert estimate is not None and estimate.estimated and estimate.longest_run_words is None
    exact = compare(shingled(story), shingled(copy))
    assert abs(estimate.jaccard - exact.jaccard) < 0.2
    assert finding_of(story, told("c"), gone=True) is None


def test_a_story_without_a_signature_whose_text_is_gone_is_judged_by_its_simhash() -> None:
    words = told("a", 15)
    assert finding_of(words, told("b", 15), gone=True) is None
    assert finding_of(words, words, gone=True) == (Kind.EXACT, Scores(1.0, 1.0, 1.0, 15))
