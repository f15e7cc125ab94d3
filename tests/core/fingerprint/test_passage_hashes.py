"""Laws of passage hashes: they depend on the passage alone, and every long enough shared run has one in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import GRAM, WINDOW, Hashes, grams_of, hashed, passage_hashes, sampled

SURE = GRAM + WINDOW - 1  # words of a shared run that is sure to be found


def word_hashes(numbers: list[int]) -> Hashes:
    return hashed([b"w%d" % n for n in numbers]).hashes


texts = st.lists(st.integers(0, 400), max_size=150).map(word_hashes)
repetitive = st.lists(st.integers(0, 2), max_size=150).map(word_hashes)


@given(st.one_of(texts, repetitive), st.one_of(texts, repetitive), texts, texts)
def test_a_shared_run_has_a_passage_hash_in_common(before: Hashes, run: Hashes, other: Hashes, after: Hashes) -> None:
    if len(run) < SURE:
        return
    one, two = np.concatenate((before, run, after)), np.concatenate((other, run))
    assert len(np.intersect1d(passage_hashes(one), passage_hashes(two))) > 0


@given(st.one_of(texts, repetitive))
def test_the_places_are_those_of_the_grams(words: Hashes) -> None:
    hashes, places = sampled(words)
    for hash_, place in zip(hashes.tolist(), places.tolist(), strict=True):
        assert sampled(words[place : place + GRAM])[0].tolist() == [hash_]


@given(st.one_of(texts, repetitive))
def test_every_window_has_a_sample_that_is_its_last_minimum(words: Hashes) -> None:
    grams, places = grams_of(words), sampled(words)[1].tolist()
    expected = set()
    for start in range(max(len(grams) - WINDOW + 1, min(len(grams), 1))):
        window = grams[start : start + WINDOW].tolist()
        expected.add(start + max(n for n, gram in enumerate(window) if gram == min(window)))
    assert places == sorted(expected)


def test_short_texts_have_none() -> None:
    assert [len(passage_hashes(word_hashes(list(range(n))))) for n in (0, 1, GRAM - 1, GRAM)] == [0, 0, 0, 1]


def test_random_words_have_80_hashes_a_thousand() -> None:
    words = word_hashes(np.random.default_rng(7).integers(0, 10**9, 100_000).tolist())
    assert 78 < len(passage_hashes(words)) / 100 < 82
