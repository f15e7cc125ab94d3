"""Laws: a SimHash equals that of voting bit by bit, and does not depend on the order of the words; two texts have the
same text hash exactly if they have the same words in the same order; passage hashes depend on the passage alone, and
every long enough shared run has one in common.
"""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.word_hashes import (
    GRAM,
    SCALE,
    WINDOW,
    Hashes,
    hash_grams,
    hash_passages,
    hash_rows,
    hash_words,
    measure_hamming,
    sample_grams,
)
from neardup.core.fingerprint.word_hashes import compute_simhash as simhash_of
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS
from tests.support.paths import SAMPLES

STORY = Extraction("article .story, div.post-body")
alphabet = [word for text in TEXTS.values() for word in tokenize(text)]
stories = st.lists(st.one_of(st.sampled_from(alphabet), st.binary(min_size=1)), min_size=1, max_size=60)
unhurried = settings(deadline=None)


def simhash(words: list[bytes]) -> bytes:
    return simhash_of(hash_words(words))


def by_vote(words: list[bytes]) -> bytes:
    """One vote per distinct word and bit, the highest bit of the first byte first."""
    votes = [0] * 128
    for word, frequency in Counter(words).items():
        weight = round(SCALE * (1 + math.log(frequency)))
        digest = int.from_bytes(xxhash.xxh3_128_digest(word))
        for bit in range(128):
            votes[bit] += weight if digest >> (127 - bit) & 1 else -weight
    return sum(1 << (127 - bit) for bit in range(128) if votes[bit] > 0).to_bytes(16)


@unhurried
@given(stories)
def test_a_simhash_equals_voting_bit_by_bit(words: list[bytes]) -> None:
    assert simhash(words) == by_vote(words)


@unhurried
@given(stories.flatmap(lambda words: st.tuples(st.just(words), st.permutations(words))))
def test_the_order_of_the_words_changes_no_simhash(orders: tuple[list[bytes], list[bytes]]) -> None:
    assert simhash(orders[0]) == simhash(orders[1])


@unhurried
@given(stories)
def test_a_fingerprint_has_16_byte_hashes_and_a_word_count(words: list[bytes]) -> None:
    result = fingerprint(words)
    assert (len(result.text_hash), len(result.simhash), result.words) == (16, 16, len(words))
    assert result == fingerprint(list(words))


@unhurried
@given(stories, stories)
def test_a_text_hash_is_equal_for_equal_words_only(left: list[bytes], right: list[bytes]) -> None:
    first, second = (
        [word.replace(b" ", b"") or b"-" for word in words] for words in (left, right)
    )  # tokens contain no spaces
    assert (fingerprint(first).text_hash == fingerprint(second).text_hash) == (first == second)
    assert (fingerprint(first).text_hash == fingerprint([b"".join(first)]).text_hash) == (len(first) == 1)


@pytest.mark.parametrize("language", SAMPLED)
def test_real_stories_share_text_hashes_only_with_equal_words(language: Language) -> None:
    pages = sorted((SAMPLES / "stories" / language).glob("*.html"))
    stories_words = [tokenize(extract_visible_text(page.read_text(encoding="utf-8"), STORY)) for page in pages]
    for a, b in combinations(stories_words, 2):
        assert (fingerprint(a).text_hash == fingerprint(b).text_hash) == (a == b)
        assert simhash(a) == by_vote(a)


@pytest.mark.parametrize("language", SAMPLED)
def test_one_changed_word_in_a_long_story_changes_few_bits(language: Language) -> None:
    """In contrast, about half of the bits differ between two unrelated stories."""
    numbered = [f"{word.decode()}{n}".encode() for n in range(60) for word in tokenize(TEXTS[language])]
    unrelated = [word[::-1] for word in numbered]
    bits = measure_hamming(
        hash_rows([simhash(numbered)]), hash_rows([simhash([*numbered[:-1], b"x"]), simhash(unrelated)])
    )
    assert bits[0] <= 8
    assert bits[1] > 32


def test_a_story_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="without words"):
        fingerprint([])


def test_the_simhash_of_a_single_word_is_its_digest() -> None:
    word = "कहानी".encode()
    assert simhash([word]) == simhash([word] * 7) == xxhash.xxh3_128_digest(word)


def test_votes_are_exact_in_any_order_of_addition() -> None:
    words = [f"{n}".encode() for n in range(400) for _ in range(1 + n % 17 * n)]
    assert simhash(words) == simhash(words[::-1]) == simhash(sorted(words)) == by_vote(words)


SURE = GRAM + WINDOW - 1  # words of a shared run that is sure to be found


def word_hashes(numbers: list[int]) -> Hashes:
    return hash_words([b"w%d" % n for n in numbers]).hashes


texts = st.lists(st.integers(0, 400), max_size=150).map(word_hashes)
repetitive = st.lists(st.integers(0, 2), max_size=150).map(word_hashes)


@given(st.one_of(texts, repetitive), st.one_of(texts, repetitive), texts, texts)
def test_a_shared_run_has_a_passage_hash_in_common(before: Hashes, run: Hashes, second: Hashes, after: Hashes) -> None:
    if len(run) < SURE:
        return
    first, two = np.concatenate((before, run, after)), np.concatenate((second, run))
    assert len(np.intersect1d(hash_passages(first), hash_passages(two))) > 0


@given(st.one_of(texts, repetitive))
def test_the_places_are_those_of_the_grams(words: Hashes) -> None:
    hashes, places = sample_grams(words)
    for hash_, place in zip(hashes.tolist(), places.tolist(), strict=True):
        assert sample_grams(words[place : place + GRAM])[0].tolist() == [hash_]


@given(st.one_of(texts, repetitive))
def test_every_window_has_a_sample_that_is_its_last_minimum(words: Hashes) -> None:
    grams, places = hash_grams(words), sample_grams(words)[1].tolist()
    expected = set()
    for start in range(max(len(grams) - WINDOW + 1, min(len(grams), 1))):
        window = grams[start : start + WINDOW].tolist()
        expected.add(start + max(n for n, gram in enumerate(window) if gram == min(window)))
    assert places == sorted(expected)


def test_short_texts_have_none() -> None:
    assert [len(hash_passages(word_hashes(list(range(n))))) for n in (0, 1, GRAM - 1, GRAM)] == [0, 0, 0, 1]


def test_random_words_have_80_hashes_a_thousand() -> None:
    words = word_hashes(np.random.default_rng(7).integers(0, 10**9, 100_000).tolist())
    assert 78 < len(hash_passages(words)) / 100 < 82
