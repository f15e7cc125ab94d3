"""Laws: passages are equal runs of words, none taken twice, the longest first, what greedy string tiling word by word
gives; none is left to find; and exchanging the stories exchanges the sides.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import Hashes, hash_words
from neardup.core.text.normalize import tokens
from neardup.core.verify import passages as passages_module
from neardup.core.verify.passages import MIN_PASSAGE, Passage, longest_run, passages
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS

few_words = st.lists(st.sampled_from("abc"), max_size=30).map("".join)
# The letters of a word are the words of a story; refrains, so that runs are long, repeated and overlap.
stories = st.one_of(
    few_words,
    st.lists(st.sampled_from("abcdefgh"), max_size=40).map("".join),
    st.lists(st.sampled_from(["abcdefgh", "defgh", "aaaa", "xabcdy", "z", "cdefg"]), max_size=8).map("".join),
)
pairs = st.tuples(stories, stories)
thorough = settings(max_examples=300, deadline=None)
TAKEN_A, TAKEN_B = -1, -2  # no hash, and not equal
one_pair_a_gram = mock.patch.object(passages_module, "MAX_PAIRS", 1)
all_pairs = mock.patch.object(passages_module, "MAX_PAIRS", 64**2)


def story(words: Sequence[object]) -> Hashes:
    return hash_words([str(word).encode() for word in words]).hashes


def word_by_word(a: Hashes, b: Hashes) -> list[Passage]:
    """Greedy string tiling by definition; of equally long runs the first in a is taken, then the first in b."""
    x, y = a.tolist(), b.tolist()
    found: list[Passage] = []
    while True:
        runs = [(-equal_words(x[i:], y[j:]), i, j) for i in range(len(x)) for j in range(len(y))]
        n, i, j = min(runs, default=(0, 0, 0))
        if -n < MIN_PASSAGE:
            return found
        found.append(Passage(i, j, -n))
        x[i : i - n] = [TAKEN_A] * -n
        y[j : j - n] = [TAKEN_B] * -n


def equal_words(x: list[int], y: list[int]) -> int:
    return next((n for n, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))


def tiled(a: Hashes, b: Hashes) -> set[tuple[int, int, int]]:
    """The same, of the two stories in the order in which `passages` looks at them."""
    if (len(b), b.tobytes()) < (len(a), a.tobytes()):
        return exchanged(word_by_word(b, a))
    return plain(word_by_word(a, b))


def exchanged(found: list[Passage]) -> set[tuple[int, int, int]]:
    return {(passage.start_b, passage.start_a, passage.words) for passage in found}


def plain(found: list[Passage]) -> set[tuple[int, int, int]]:
    return {(passage.start_a, passage.start_b, passage.words) for passage in found}


def assert_passages(a: Hashes, b: Hashes) -> list[Passage]:
    """All laws that hold of any two stories, however repetitive."""
    found = passages(a, b)
    assert found == sorted(found, key=lambda passage: (-passage.words, passage.start_a, passage.start_b))
    left_a, left_b = a.tolist(), b.tolist()
    for passage in found:
        assert passage.words >= MIN_PASSAGE
        within_a = slice(passage.start_a, passage.start_a + passage.words)
        within_b = slice(passage.start_b, passage.start_b + passage.words)
        assert left_a[within_a] == left_b[within_b], "equal, and no word taken twice"
        left_a[within_a] = [TAKEN_A] * passage.words
        left_b[within_b] = [TAKEN_B] * passage.words
    for passage in found:
        beside = [
            (passage.start_a - 1, passage.start_b - 1),
            (passage.start_a + passage.words, passage.start_b + passage.words),
        ]
        for i, j in beside:
            if 0 <= i < len(a) and 0 <= j < len(b):
                assert left_a[i] != left_b[j], "a passage goes on as far as it can"
    assert grams(left_a).isdisjoint(grams(left_b)), "nothing is left to find"
    assert exchanged(passages(b, a)) == plain(found)
    return found


def grams(words: list[int]) -> set[tuple[int, ...]]:
    every = (tuple(words[n : n + MIN_PASSAGE]) for n in range(len(words) - MIN_PASSAGE + 1))
    return {gram for gram in every if not {TAKEN_A, TAKEN_B}.intersection(gram)}


@thorough
@given(pairs)
def test_passages_equal_tiling_word_by_word(words: tuple[str, str]) -> None:
    a, b = map(story, words)
    with all_pairs:
        assert plain(assert_passages(a, b)) == tiled(a, b)


@thorough
@given(pairs)
def test_passages_are_complete_despite_many_refrains(words: tuple[str, str]) -> None:
    with one_pair_a_gram:
        assert_passages(*map(story, words))


@thorough
@given(pairs)
def test_first_passage_is_the_longest_run(words: tuple[str, str]) -> None:
    a, b = map(story, words)
    longest = longest_run(a, b)
    with all_pairs:
        found = passages(a, b)
    assert [passage.words for passage in found[:1]] == ([longest] if longest >= MIN_PASSAGE else [])


@given(stories, st.booleans())
def test_story_shares_one_passage_with_itself(words: str, repetitive: bool) -> None:
    a = story(words)
    with mock.patch.object(passages_module, "MAX_PAIRS", 1 if repetitive else passages_module.MAX_PAIRS):
        assert passages(a, a) == ([Passage(0, 0, len(a))] if len(a) >= MIN_PASSAGE else [])


@given(stories.filter(lambda words: len(words) >= MIN_PASSAGE), st.tuples(*[st.integers(0, 30)] * 4))
def test_run_planted_in_unrelated_stories_is_found(planted: str, around: tuple[int, ...]) -> None:
    before_a, after_a, before_b, after_b = ([f"{side}{n}" for n in range(many)] for side, many in enumerate(around))
    found = passages(story([*before_a, *planted, *after_a]), story([*before_b, *planted, *after_b]))
    assert found == [Passage(len(before_a), len(before_b), len(planted))]


@given(st.integers(0, MIN_PASSAGE - 1), stories)
def test_texts_shorter_than_a_passage_share_none(count: int, words: str) -> None:
    assert passages(story(words[:count]), story(words)) == []


@pytest.mark.parametrize("language", SAMPLED)
def test_replaced_word_splits_a_passage_in_every_language(language: Language) -> None:
    words = [f"{word.decode()}{n}" for n in range(5) for word in tokens(TEXTS[language])]
    other = list(words)
    other[12] = "another"
    a, b = story(words), story(other)
    assert passages(a, b) == [Passage(13, 13, len(words) - 13), Passage(0, 0, 12)]
    assert passages(a, story(other[20:] + other[:20])) == [
        Passage(20, 0, len(words) - 20),
        Passage(0, len(words) - 20, 12),
        Passage(13, len(words) - 7, 7),
    ]


LONG = 10_000
numbers = random.Random(1).choices(range(3000), [1 / (rank + 3) for rank in range(3000)], k=LONG)
REPETITIVE = {
    "one word": ([1] * LONG, [1] * LONG, 1.0),
    "one word, half of them": ([1] * LONG, [1] * (LONG // 2) + [2] * (LONG // 2), 0.5),
    "a refrain": (list(range(10)) * 1000, list(range(10)) * 1000, 1.0),
    "a refrain, begun in its middle": (list(range(10)) * 1000, list(range(5, 10)) + list(range(10)) * 999, 0.9995),
    "a refrain between verses": (
        [word for n in range(0, LONG // 2, 5) for word in [*range(-5, 0), *numbers[n : n + 5]]],
        [word for n in range(0, LONG // 2, 5) for word in [*range(-5, 0), f"{n}a", f"{n}b", f"{n}c"]],
        0.5,
    ),
    "two words by chance": (
        random.Random(3).choices("ab", k=LONG),
        random.Random(4).choices("ab", k=LONG),
        0.8,
    ),
}


@pytest.mark.parametrize("name", REPETITIVE)
def test_repetitive_stories_are_covered(name: str) -> None:
    words_a, words_b, share = REPETITIVE[name]
    a, b = story(words_a), story(words_b)
    found = passages(a, b)
    assert sum(passage.words for passage in found) >= share * len(a), "of a's words"
    for places in ([(p.start_a, p.words) for p in found], [(p.start_b, p.words) for p in found]):
        assert all(start + words <= after for (start, words), (after, _) in pairwise(sorted(places)))
    for passage in found:
        assert np.array_equal(a[passage.start_a :][: passage.words], b[passage.start_b :][: passage.words])


def test_gram_pairs_grow_linearly_with_words() -> None:
    """The time itself decides nothing; a square of 10,000 would not fit into memory."""
    for words_a, words_b, _ in REPETITIVE.values():
        at_a, at_b = passages_module._pair_places(
            passages_module._grams(story(words_a)), passages_module._grams(story(words_b))
        )
        assert len(at_a) == len(at_b) <= LONG * passages_module.MAX_PAIRS**0.5
