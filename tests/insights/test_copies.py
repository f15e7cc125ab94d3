"""Laws: planted pairs are counted apart from unrelated pairs, and displayed shares are never rounded up.

A planted run stands in another story that stays whole; an edited run keeps nine of ten words; no chapter is in two
works of one size; the words in common runs are those that the definition names.
"""

import random
import sqlite3
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, SIMILAR
from neardup.insights.copies import (
    RUN,
    Pair,
    _read_pairs,
    count_cross_pairs,
    count_kinds,
    count_words_in_common_runs,
    measure_scores,
    score_pairs,
    select_cross_flags,
)
from neardup.insights.corpus import COPIES, Copy, Corpus, Original, PlantedStory, plant
from neardup.insights.edits import EDITS, REST, WORKS, Work, insert_run
from neardup.insights.tables import format_cell
from neardup.records import Language

from tests.support.languages import ENGLISH, ODIA, SAMPLED, TAMIL
from tests.support.sample_texts import AROUND, rng

FIRST, SECOND, RUN_EDIT, THREE = EDITS[0], EDITS[1], EDITS[-1], WORKS[0]


def corpus(
    *copies: tuple[int | tuple[int, ...], Copy], donors: dict[int, set[int]] | None = None, originals: int = 3
) -> Corpus:
    stories = [PlantedStory((n,), None) for n in range(originals)]
    stories += [PlantedStory((origin,) if isinstance(origin, int) else origin, copy) for origin, copy in copies]
    donors_of = [frozenset((donors or {}).get(n, ())) for n in range(originals)]
    return Corpus([Original(100 + n, ODIA, "") for n in range(originals)], stories, donors_of)


def test_a_copy_is_found_only_with_its_own_original() -> None:
    planted = corpus((0, FIRST), (1, FIRST), (1, SECOND))
    pairs = [Pair(0, 3, NEAR, 0.9, 0.9), Pair(0, 4, EXACT, 1, 1), Pair(1, 5, None, 0.4, 0.4)]
    assert count_kinds(planted, pairs) == {
        FIRST.name: Counter({NEAR: 1, None: 1}),
        SECOND.name: Counter({None: 1}),
    }
    assert select_cross_flags(planted, pairs) == [pairs[1]]


def test_related_originals_are_left_out_of_precision() -> None:
    planted = corpus((0, FIRST), donors={0: {1}}, originals=5)
    own, donor, like_donor, like_own, unrelated = (Pair(n, 5, SIMILAR, 0.6, 0.7) for n in (0, 1, 2, 3, 4))
    overlaps = [Pair(1, 2, None, 0.1, 0.3), Pair(0, 3, PARTIAL, 0.2, 0.6)]
    scored = score_pairs(planted, [own, donor, like_donor, like_own, unrelated, *overlaps])
    assert list(scored.planted) == [(0.6, 0.7)]
    assert list(scored.unrelated) == [(0.6, 0.7)]
    assert (scored.left_out, scored.copies) == (3, 1)


def test_a_pair_of_two_corpora_is_of_neither() -> None:
    first, second = corpus(), replace(corpus(), first=3)
    db = sqlite3.connect(":memory:")
    for table, only in ("flags", "kind DEFAULT 1, status DEFAULT 'open'"), ("candidates", "verified_at DEFAULT 1"):
        columns = "a, b, jaccard DEFAULT 0.5, hamming, containment_a DEFAULT 0.5, containment_b DEFAULT 0.5"
        db.execute(f"CREATE TABLE {table} ({columns}, {only})")
        db.executemany(f"INSERT INTO {table} (a, b) VALUES (?, ?)", [(0, 2), (2, 3), (1, 4), (3, 5)])
    of_each = [{(pair.a, pair.b) for pair in _read_pairs(db, each)} for each in (first, second)]
    assert of_each == [{(0, 2)}, {(0, 2)}]


def test_each_chapter_of_a_work_is_found_by_itself() -> None:
    planted = corpus((1, RUN_EDIT), ((2, 0, 1), THREE), originals=3)
    pairs = [Pair(0, 4, PARTIAL, 0.3, 0.9), Pair(2, 4, None, 0.1, 0.4), Pair(1, 3, SIMILAR, 0.6, 0.7)]
    assert count_kinds(planted, pairs) == {
        RUN_EDIT.name: Counter({SIMILAR: 1}),
        THREE.name: Counter({PARTIAL: 1, None: 2}),
    }
    scored = score_pairs(planted, pairs)
    assert (scored.copies, scored.planted, scored.unrelated) == (0, [], []), "the scores are of whole copies"


origins = st.integers(0, 3) | st.sets(st.integers(0, 3), min_size=2).map(lambda some: tuple(sorted(some)))


@given(st.lists(origins, max_size=12))
def test_pairs_of_different_origin_are_counted(copies: list[int | tuple[int, ...]]) -> None:
    planted = corpus(*((origin, FIRST) for origin in copies), originals=4)
    stories = planted.stories
    expected = sum(not set(a.origins) & set(b.origins) for n, a in enumerate(stories) for b in stories[:n])
    assert count_cross_pairs(planted) == expected


def test_the_seed_determines_the_planted_copies() -> None:
    originals = [Original(n, ENGLISH, " ".join(f"word{n} of{k}" for k in range(40))) for n in range(3)]
    assert plant(originals, COPIES, 1) == plant(originals, COPIES, 1)
    assert plant(originals, COPIES, 1)[1] != plant(originals, COPIES, 2)[1]


def test_each_original_precedes_its_copies_and_works_come_last() -> None:
    planted, texts = plant([Original(n, ENGLISH, f"word{n} of " * 40) for n in range(7)], COPIES, 1, first=50)
    assert planted.ids == range(50, 50 + len(texts))
    works = [story for story in planted.stories if isinstance(story.copy, Work)]
    others = planted.stories[: -len(works)]
    assert [story.origins for story in others] == sorted(story.origins for story in others)
    first = [next(story for story in others if story.origins == (n,)) for n in range(7)]
    assert [story.copy for story in first] == [None] * 7
    assert sum(story.copy is None for story in planted.stories) == 7
    assert Counter(len(story.origins) for story in works) == {3: 2, 5: 1}, "no work has too few chapters"
    for story, text in zip(planted.stories, texts, strict=True):
        assert all(f"word{n} of" in text for n in story.origins) or not isinstance(story.copy, Work)


def test_the_longest_story_takes_text_from_several_donors() -> None:
    texts = ["a " * 500, "b " * 20, "c " * 30]
    planted, _ = plant([Original(n, TAMIL, text) for n, text in enumerate(texts)], COPIES, 1)
    assert planted.donors[0] == {1, 2}
    assert planted.donors[1] < {0, 2}


@given(st.floats(0, 1))
def test_a_displayed_share_is_never_rounded_up(value: float) -> None:
    assert float(format_cell(value)) <= value + 1e-9
    assert (format_cell(value) == "1.000") == (value > 1 - 1e-9)


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
