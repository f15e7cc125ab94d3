"""Laws: a SimHash is what voting bit by bit gives, 16 bytes whatever the words, and their order changes nothing; two
texts have one text hash exactly when they have the same words in the same order.
"""

import math
from collections import Counter
from itertools import combinations

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.simhash import SCALE
from neardup.core.fingerprint.simhash import simhash as simhash_of
from neardup.core.fingerprint.word_hashes import hashed
from neardup.core.text.html import Extraction, visible_text
from neardup.core.text.normalize import tokens
from neardup.core.verify.scores import hamming, hash_rows
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS
from tests.support.paths import SAMPLES

STORY = Extraction("article .story, div.post-body")
alphabet = [word for text in TEXTS.values() for word in tokens(text)]
stories = st.lists(st.one_of(st.sampled_from(alphabet), st.binary(min_size=1)), min_size=1, max_size=60)
unhurried = settings(deadline=None)


def simhash(words: list[bytes]) -> bytes:
    return simhash_of(hashed(words))


def by_vote(words: list[bytes]) -> bytes:
    """One vote a distinct word and bit, the highest bit of the first byte first."""
    votes = [0] * 128
    for word, frequency in Counter(words).items():
        weight = round(SCALE * (1 + math.log(frequency)))
        digest = int.from_bytes(xxhash.xxh3_128_digest(word))
        for bit in range(128):
            votes[bit] += weight if digest >> (127 - bit) & 1 else -weight
    return sum(1 << (127 - bit) for bit in range(128) if votes[bit] > 0).to_bytes(16)


@unhurried
@given(stories)
def test_a_simhash_is_what_voting_bit_by_bit_gives(words: list[bytes]) -> None:
    assert simhash(words) == by_vote(words)


@unhurried
@given(stories.flatmap(lambda words: st.tuples(st.just(words), st.permutations(words))))
def test_the_order_of_the_words_changes_nothing(orders: tuple[list[bytes], list[bytes]]) -> None:
    assert simhash(orders[0]) == simhash(orders[1])


@unhurried
@given(stories)
def test_a_fingerprint_is_16_bytes_of_each_hash_and_the_number_of_words(words: list[bytes]) -> None:
    made = fingerprint(words)
    assert (len(made.text_hash), len(made.simhash), made.words) == (16, 16, len(words))
    assert made == fingerprint(list(words))


@unhurried
@given(stories, stories)
def test_a_text_hash_is_equal_for_equal_words_only(left: list[bytes], right: list[bytes]) -> None:
    one, other = (
        [word.replace(b" ", b"") or b"-" for word in words] for words in (left, right)
    )  # tokens hold no space
    assert (fingerprint(one).text_hash == fingerprint(other).text_hash) == (one == other)
    assert (fingerprint(one).text_hash == fingerprint([b"".join(one)]).text_hash) == (len(one) == 1)


@pytest.mark.parametrize("language", SAMPLED)
def test_stories_share_a_text_hash_exactly_where_they_share_their_words(language: Language) -> None:
    pages = sorted((SAMPLES / "stories" / language).glob("*.html"))
    told = [tokens(visible_text(page.read_text(encoding="utf-8"), STORY)) for page in pages]
    for a, b in combinations(told, 2):
        assert (fingerprint(a).text_hash == fingerprint(b).text_hash) == (a == b)
        assert simhash(a) == by_vote(a)


@pytest.mark.parametrize("language", SAMPLED)
def test_a_word_changed_in_a_long_story_changes_few_bits(language: Language) -> None:
    """Of two unrelated stories about half of the bits differ."""
    numbered = [f"{word.decode()}{n}".encode() for n in range(60) for word in tokens(TEXTS[language])]
    unrelated = [word[::-1] for word in numbered]
    bits = hamming(hash_rows([simhash(numbered)]), hash_rows([simhash([*numbered[:-1], b"x"]), simhash(unrelated)]))
    assert bits[0] <= 8
    assert bits[1] > 32


def test_no_words_have_no_fingerprint() -> None:
    with pytest.raises(ValueError, match="without words"):
        fingerprint([])


def test_a_single_word_votes_alone() -> None:
    word = "कहानी".encode()
    assert simhash([word]) == simhash([word] * 7) == xxhash.xxh3_128_digest(word)


def test_the_sums_are_exact_where_floats_of_another_order_would_not_be() -> None:
    words = [f"{n}".encode() for n in range(400) for _ in range(1 + n % 17 * n)]
    assert simhash(words) == simhash(words[::-1]) == simhash(sorted(words)) == by_vote(words)
