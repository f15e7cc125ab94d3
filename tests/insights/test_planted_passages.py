"""Laws: a planted run stands in another story that stays whole; an edited run keeps nine of ten words; no chapter is in
two works of one size; the words in common runs are those that the definition names.
"""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.insights.copies import RUN, count_words_in_common_runs, measure_scores
from neardup.insights.edits import REST, WORKS, Work, insert_run
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import AROUND, rng

seeds = st.integers(0, 2**32)
texts = st.lists(st.sampled_from([b"a", b"b"]), max_size=30)
every_work = pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)


@given(language=st.sampled_from(SAMPLED), length=st.integers(1, 60), seed=seeds, edited=st.booleans())
def test_a_run_is_put_into_a_whole_story(language: Language, length: int, seed: int, *, edited: bool) -> None:
    others = AROUND[language]
    words = [f"word{n}" for n in range(length + REST)]
    copy = insert_run(length, edited=edited)(" ".join(words), others, rng(seed))
    assert copy is not None
    own = set(words)
    kept = [word for word in copy.split() if word in own]
    assert not Counter(others.host) - Counter(copy.split()), "the host lost words"
    assert len(copy.split()) == len(others.host) + length
    assert len(kept) == length - (len(range(5, length, 10)) if edited else 0)
    places = [words.index(word) for word in kept]
    assert places == sorted(places)
    assert places[-1] - places[0] < length, "the words are not of one run"


@given(length=st.integers(1, 400), missing=st.integers(1, 50), seed=seeds)
def test_no_run_is_copied_from_a_story_that_has_little_more(length: int, missing: int, seed: int) -> None:
    words = ["word"] * (length + REST - missing)
    assert insert_run(length)(" ".join(words), AROUND[SAMPLED[0]], rng(seed)) is None


@every_work
@given(stories=st.integers(0, 70), seed=seeds)
def test_a_story_is_a_chapter_of_one_work(work: Work, stories: int, seed: int) -> None:
    drawn = work.draw(stories, random.Random(seed))
    assert len(drawn) == stories // work.chapters, "the rest is too few for a work"
    assert all(len(chapters) == work.chapters for chapters in drawn)
    chapters = [n for chapters_drawn in drawn for n in chapters_drawn]
    assert len(set(chapters)) == len(chapters)
    assert set(chapters) <= set(range(stories))


@given(texts, texts)
def test_words_in_common_runs(a: list[bytes], b: list[bytes]) -> None:
    def occurs(run: list[bytes]) -> bool:
        return any(b[n : n + RUN] == run for n in range(len(b) - RUN + 1))

    inside = sum(
        any(occurs(a[n : n + RUN]) for n in range(max(k - RUN + 1, 0), min(k, len(a) - RUN) + 1)) for k in range(len(a))
    )
    assert count_words_in_common_runs(a, b) == inside


def test_scores_of_word_pairs() -> None:
    assert measure_scores([b"a", b"b", b"c"], [b"a", b"b", b"d"]) == (1 / 3, 1 / 2)
    assert measure_scores([b"a"], [b"a"]) == (1, 1)
    assert measure_scores([b"a"], [b"b", b"c"]) == (0, 0)
