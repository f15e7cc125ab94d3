"""Laws: blocks are equal words on both sides, in order, within the texts, and no word is in two; exchanging the texts
exchanges the sides; identical texts align wholly; a copied run is found, edited or not; unrelated texts share nothing;
the native functions give what their references do.
"""

import random
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import WINDOW, Hashes, PassageHashes, hash_passages, hash_words
from neardup.core.native.comparison import MOST_KEPT
from neardup.core.text.normalize import tokenize
from neardup.core.verify.alignment import (
    MAX_GAP,
    NO_HASHES,
    align,
    are_own,
    find_copied,
    find_copied_of_pairs,
    measure_longest_run,
    pair_shared_shingles,
    sample_passages,
    span_places,
)
from neardup.records import MIN_BLOCK, Language, Spans

from tests.support.languages import SAMPLED, TEXTS
from tests.support.sample_texts import STORIES
from tests.support.sampling import EXAMPLES

# The letters of a word are the words of a story; refrains, so that runs are long, repeated and overlap.
stories = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=60).map("".join),
    st.lists(st.sampled_from("abcdefgh"), max_size=80).map("".join),
    st.lists(
        st.sampled_from(["abcdefghijklmnop", "defghijkl", "aaaa", "abcdefgXijklmnop", "z", "cdefgijkl"]), max_size=12
    ).map("".join),
)
unhurried = settings(deadline=None)
lengths = st.integers(MIN_BLOCK, 200)


def story(words: Sequence[object]) -> Hashes:
    return hash_words([str(word).encode() for word in words]).hashes


def story_of(words: Sequence[bytes]) -> Hashes:
    return hash_words(words).hashes


def prose(seed: str, n: int) -> list[str]:
    """Words of which none occurs twice."""
    return [f"{seed}{k}" for k in range(n)]


def covered(spans: Spans) -> int:
    return int((spans[:, 1] - spans[:, 0]).sum())


@unhurried
@given(stories, stories)
def test_blocks_are_equal_words_in_order_and_disjoint(first: str, second: str) -> None:
    a, b = story(first), story(second)
    runs = align(a, b)
    for at_a, at_b, words, _ in runs.tolist():
        assert words > 0
        assert (a[at_a : at_a + words] == b[at_b : at_b + words]).all()
        assert len(a[at_a : at_a + words]) == words
    for earlier, later in pairwise(runs.tolist()):
        if earlier[3] == later[3]:
            gaps = [later[side] - earlier[side] - earlier[2] for side in (0, 1)]
            assert min(gaps) >= 0 and 0 < max(gaps) <= MAX_GAP
    blocks, sizes = np.unique(runs[:, 3], return_inverse=True)
    assert (np.bincount(sizes, runs[:, 2], minlength=len(blocks)) >= MIN_BLOCK).all()
    found = find_copied(a, b)
    for spans, words in ((found.spans_a, a), (found.spans_b, b)):
        flat = spans.ravel().tolist()
        assert flat == sorted(flat) and (not flat or (flat[0] >= 0 and flat[-1] <= len(words)))
        assert all(start < end for start, end in spans.tolist())
        assert found.words <= runs[:, 2].sum() <= covered(spans)


@unhurried
@given(stories, stories)
def test_exchanging_the_texts_exchanges_the_sides(first: str, second: str) -> None:
    a, b = story(first), story(second)
    common = hash_passages(a)[::2]
    there, back = find_copied(a, b, common), find_copied(b, a, common)
    assert (there.words, there.common_words, there.longest_run) == (back.words, back.common_words, back.longest_run)
    assert there.spans_a.tolist() == back.spans_b.tolist()
    assert there.spans_b.tolist() == back.spans_a.tolist()


@unhurried
@given(stories, stories)
def test_longest_run_is_that_of_the_texts(first: str, second: str) -> None:
    a, b = story(first), story(second)
    assert find_copied(a, b).longest_run in {None, measure_longest_run(a, b)}


@unhurried
@given(stories.filter(lambda text: len(text) >= MIN_BLOCK))
def test_identical_texts_align_wholly(text: str) -> None:
    words = story(text)
    found = find_copied(words, words.copy())
    assert found.spans_a.tolist() == found.spans_b.tolist() == [[0, len(words)]]
    assert found.longest_run in {None, len(words)}


@unhurried
@given(lengths, st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_copied_run_is_found_where_it_stands(n: int, before: int, after: int, at: int) -> None:
    a = [*prose("a", before), *prose("copy", n), *prose("c", after)]
    b = [*prose("b", at), *prose("copy", n), *prose("d", before)]
    found = find_copied(story(a), story(b))
    assert (found.words, found.longest_run) == (n, n)
    assert found.spans_a.tolist() == [[before, before + n]]
    assert found.spans_b.tolist() == [[at, at + n]]


@unhurried
@given(
    lengths.filter(lambda n: n >= 4 * MIN_BLOCK), st.integers(0, MAX_GAP), st.integers(0, MAX_GAP), st.integers(6, 12)
)
def test_edited_run_is_one_block(n: int, removed: int, added: int, every: int) -> None:
    """Each `every` words, some are removed and others are added."""
    source = prose("copy", n)
    edited: list[str] = []
    kept = 0
    for start in range(0, n, every + removed):
        edited += source[start : start + every]
        kept += len(source[start : start + every])
        if start + every + removed < n - MIN_BLOCK:
            edited += prose(f"new{start}_", added)
        else:
            edited += source[start + every :]
            kept += len(source[start + every :])
            break
    found = find_copied(story([*prose("a", 50), *source]), story([*edited, *prose("b", 50)]))
    assert found.words == kept
    assert found.spans_a.tolist() == [[50, 50 + n]]
    assert found.spans_b.tolist() == [[0, len(edited)]]


@unhurried
@given(lengths, st.integers(2, 40))
def test_repeated_text_counts_once(n: int, times: int) -> None:
    refrain = prose("refrain", n)
    found = find_copied(story(refrain * times), story([*prose("a", 9), *refrain * times]))
    assert n <= found.words <= n + 3, "a gram may reach into the next repetition"
    assert find_copied(story(refrain * times), story([*prose("a", 9), *refrain])).words == n


@unhurried
@given(lengths, st.lists(st.integers(1, MAX_GAP), min_size=2, max_size=60))
def test_a_refrain_between_other_words_counts_once(n: int, verses: list[int]) -> None:
    refrain = prose("r", n)
    a, b = (
        list(chain.from_iterable([*prose(f"{name}{k}-", words), *refrain] for k, words in enumerate(verses)))
        for name in "ab"
    )
    assert find_copied(story(a), story(b)).words == n


@pytest.mark.parametrize("language", SAMPLED)
def test_shuffled_text_shares_nothing_and_edited_text_nearly_all(language: Language) -> None:
    words = [f"{word.decode()}{n}" for n in range(40) for word in tokenize(TEXTS[language])]
    chance = random.Random(1)
    shuffled = chance.sample(words, len(words))
    assert find_copied(story(words), story(shuffled)).words == 0
    edited = [chance.choice(words) if n % 10 == 5 else word for n, word in enumerate(words)]
    assert find_copied(story(words), story(edited)).words >= 0.88 * len(words)


@unhurried
@given(st.integers(3 * WINDOW, 200), st.integers(2 * WINDOW, 200), st.booleans())
def test_common_passage_is_left_out(prayer_words: int, n: int, prayer_first: bool) -> None:
    """A copied passage beside a prayer counts, but for the words of one window."""
    prayer, own = prose("prayer", prayer_words), prose("copy", n)
    both = [*prayer, *own] if prayer_first else [*own, *prayer]
    common = hash_passages(story(prayer))
    found = find_copied(story([*prose("a", 90), *both]), story([*both, *prose("b", 90)]), common)
    assert found.words + found.common_words == prayer_words + n
    assert abs(found.words - n) <= WINDOW + 3
    assert covered(found.spans_a) == covered(found.spans_b) == found.words
    alone = find_copied(story([*prose("a", 90), *prayer]), story([*prayer, *prose("b", 90)]), common)
    assert (alone.words, alone.common_words, len(alone.spans_a)) == (0, prayer_words, 0)


def assert_equal_to_references(a: Hashes, b: Hashes, common: PassageHashes, at_least: int = 0) -> None:
    """The native functions give what their references do."""
    pairs = np.array([(0, 1, at_least), (1, 0, 0), (0, 0, at_least)], np.int32)
    found, expected = (
        of_pairs((a, b), pairs, common) for of_pairs in (find_copied_of_pairs, find_copied_of_pairs.reference)
    )
    assert repr(found) == repr(expected), "numbers, types or spans of copied words differ"
    assert align(a, b).tolist() == align.reference(a, b).tolist(), "blocks differ"
    assert are_own(a, common).tolist() == are_own.reference(a, common).tolist(), "own words differ"
    assert sample_passages(a).tolist() == sample_passages.reference(a).tolist(), "sampled passages differ"


@pytest.mark.native
@unhurried
@given(stories, stories, st.integers(1, 4), st.sampled_from([0, MIN_BLOCK, 20]))
def test_native_functions_equal_their_references(first: str, second: str, every: int, at_least: int) -> None:
    a, b = story(first), story(second)
    assert_equal_to_references(a, b, hash_passages(a)[::every] if every < 4 else NO_HASHES, at_least)
    assert_equal_to_references(a, a.copy(), hash_passages(a)[1::every], at_least)


@pytest.mark.native
@settings(deadline=None, max_examples=EXAMPLES)
@given(st.sampled_from(SAMPLED), st.integers(0, 999), st.sampled_from([0, 0.02, 0.1, 0.4, 1]))
def test_native_functions_equal_their_references_in_each_language(
    language: Language, seed: int, changed: float
) -> None:
    chance = random.Random(seed)
    source, unrelated = (tokenize(text) for text in chance.sample(STORIES[language], 2))
    moved = chance.sample([source[n : n + 60] for n in range(0, len(source), 60)], -(-len(source) // 60))
    edited = [
        new
        for word in chain.from_iterable(moved)
        for new in ([word] if chance.random() >= changed else chance.choices(source, k=chance.randrange(3)))
    ]
    a, b = story_of(source), story_of([*unrelated[: chance.randrange(len(unrelated))], *edited])
    assert_equal_to_references(a, b, hash_passages(a)[:: chance.randint(1, 9)] if chance.random() < 0.5 else NO_HASHES)


@pytest.mark.native
def test_native_functions_equal_their_references_for_texts_longer_than_a_thread_keeps_room_for() -> None:
    chance = random.Random(1)
    refrain, text = prose("la", 30), prose("word", MOST_KEPT)
    edited = [word for word in text if chance.random() > 0.05]
    a, b = story([*refrain * 30, *text, *refrain * 9]), story([*refrain * 20, *edited, *text[900:990]])
    assert_equal_to_references(a, b, hash_passages(a[300:900]))


def test_novel_of_refrains_takes_no_quadratic_time() -> None:
    refrain = prose("la", 7)
    a, b = story(refrain * 8_000), story([*prose("x", 11), *refrain * 8_000])
    assert find_copied(a, b).words <= 10


@unhurried
@given(stories, stories)
def test_words_of_shared_shingles_are_paired_once_whatever_the_order_of_the_texts(first: str, second: str) -> None:
    a, b = story(first), story(second)
    at_a, at_b = pair_shared_shingles(a, b)
    assert (a[at_a] == b[at_b]).all()
    assert len(set(at_a.tolist())) == len(set(at_b.tolist())) == len(at_a)
    assert sorted(zip(*map(np.ndarray.tolist, pair_shared_shingles(b, a)), strict=True)) == sorted(
        zip(at_b.tolist(), at_a.tolist(), strict=True)
    )
    assert bool(len(at_a)) == bool(set(pairwise(first)) & set(pairwise(second)))
    assert covered(span_places(at_a)) == len(at_a)
