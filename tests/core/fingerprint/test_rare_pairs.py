"""Laws of rare pairs: order and words between them do not matter, both implementations are the same, and a story that
shares no rare word shares no hash.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.fingerprint.common_words import CHUNK, are_rare, filter_bits, list_rare_words, load_common_words
from neardup.core.fingerprint.compute import NEARBY, PAIRS, hash_rare_pairs
from neardup.core.fingerprint.word_hashes import Hashes, hash_words
from neardup.core.native.fingerprint import RARE_PAIRS
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

RARE = [f"name{n}".encode() for n in range(60) if are_rare(hash_words([f"name{n}".encode()]).hashes).all()]
COMMON = [b"the", b"and", "है".encode(), "আমি".encode()]
texts = st.lists(st.sampled_from([*RARE, *COMMON]), max_size=80)


def hashes_of(words: list[bytes]) -> Hashes:
    return hash_words(words).hashes if words else np.empty(0, np.uint64)


def test_the_filter_has_as_many_bits_as_its_size_says() -> None:
    assert 1 << filter_bits(load_common_words()) == len(load_common_words()) * CHUNK
    assert not are_rare(hashes_of(COMMON)).any() and len(RARE) > 50
    assert RARE_PAIRS == PAIRS


@pytest.mark.native
@given(texts)
def test_the_native_core_finds_the_pairs_of_the_reference(words: list[bytes]) -> None:
    hashes = hashes_of(words)
    assert np.sort(hash_rare_pairs(hashes)).tolist() == np.sort(hash_rare_pairs.reference(hashes)).tolist()


@given(texts)
def test_the_order_of_the_text_does_not_matter(words: list[bytes]) -> None:
    assert set(hash_rare_pairs(hashes_of(words)).tolist()) == set(hash_rare_pairs(hashes_of(words[::-1])).tolist())


@given(st.lists(st.sampled_from(RARE), min_size=2, max_size=2, unique=True), st.integers(0, 2 * NEARBY))
def test_two_rare_words_are_a_pair_if_they_stand_close_together(pair: list[bytes], between: int) -> None:
    found = hash_rare_pairs(hashes_of([pair[0], *[COMMON[0]] * between, pair[1], COMMON[1]]))
    assert len(found) == (between < NEARBY)


def test_a_language_without_a_list_of_common_words_has_no_pairs() -> None:
    assert not len(hash_rare_pairs(hashes_of(RARE * 2))) and not len(hash_rare_pairs.reference(hashes_of(RARE * 2)))


@given(texts)
def test_each_distinct_rare_word_has_its_first_place(words: list[bytes]) -> None:
    found = list_rare_words(hashes_of(words), are_rare(hashes_of(words)))
    assert sorted(found.places.tolist()) == sorted({words.index(word) for word in words if word in RARE})
    assert np.array_equal(hashes_of(words)[found.places], found.hashes) and (np.diff(found.hashes) > 0).all()


@pytest.mark.parametrize("language", SAMPLED)
def test_most_words_of_a_text_are_common_and_enough_are_rare(language: Language) -> None:
    for text in STORIES[language]:
        hashes = hashes_of(tokenize(text))
        assert 0.3 < 1 - are_rare(hashes).mean() < 0.95, f"{language}: the list of common words is another language's"
        assert len(hash_rare_pairs(hashes)) == PAIRS
        shuffled = np.random.default_rng(0).permutation(hashes)
        assert len(np.intersect1d(hash_rare_pairs(hashes), hash_rare_pairs(shuffled))) < PAIRS / 2
