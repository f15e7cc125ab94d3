"""Laws of skeletons: scripts, vowels and spaces do not change them, and both implementations are the same."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import hash_text
from neardup.core.fingerprint.skeleton import (
    GRAM,
    LEAST,
    SHARE,
    Skeleton,
    find_skeleton_parts,
    hash_grams,
    hash_skeleton,
    make_skeleton,
)
from neardup.core.text.consonants import BLOCKS, LAYOUT, NO_CONSONANT, classify_consonants
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

OFFSETS = sorted(offset for offsets in LAYOUT.values() for offset in offsets)
VOWELS = range(0x3E, 0x43)
letters = st.sampled_from([*OFFSETS, *VOWELS])
words_of_offsets = st.lists(st.lists(letters, min_size=1, max_size=8), min_size=1, max_size=30)


def written(block: int, words: Sequence[Sequence[int]]) -> bytes:
    return b" ".join("".join(chr(block + offset) for offset in word).encode() for word in words)


def of_text(text: str) -> Skeleton:
    return make_skeleton(b" ".join(tokenize(text)))


def by_native_core(words: Sequence[bytes]) -> list[int]:
    hashes: list[int] = hash_text(b" ".join(words), is_normalised=True).skeleton_hashes.tolist()
    return hashes


@given(words_of_offsets)
def test_a_word_has_one_skeleton_in_all_blocks(words: list[list[int]]) -> None:
    first, *others = (make_skeleton(written(block, words)) for block in BLOCKS)
    for other in others:
        assert other.classes.tolist() == first.classes.tolist(), "a script is read otherwise than Devanagari"
        assert other.words.tolist() == first.words.tolist()


@given(words_of_offsets)
def test_vowels_and_spaces_do_not_change_the_classes(words: list[list[int]]) -> None:
    whole = [[offset for word in words for offset in word if offset not in VOWELS]]
    assert (
        make_skeleton(written(0x900, whole)).classes.tolist() == make_skeleton(written(0x900, words)).classes.tolist()
    )


@pytest.mark.parametrize(
    "text",
    ["मेरा भारत महान है", "মেরা ভারত মহান হৈ", "மேரா பாரத மஹான ஹை", "മേരാ ഭാരത മഹാന ഹൈ", "mērā bhārata mahāna hai",
     "mera bharat mahaan hai", "میرا بھارت مہان ہے", "ਮੇਰਾ ਭਾਰਤ ਮਹਾਨ ਹੈ", "merab haratma hanhai"],
)  # fmt: skip
def test_one_sentence_has_one_skeleton_in_every_script(text: str) -> None:
    assert of_text(text).classes.tolist() == of_text("mr brt mn").classes.tolist(), text


SCRIPTS = ("मेरा भारत महान है", "মেরা ভারত মহান হৈ", "மேரா பாரத மஹான ஹை", "mera bharat mahaan hai", "میرا بھارت مہان ہے")


@given(st.lists(st.sampled_from([sentence.split() for sentence in SCRIPTS]), min_size=4, max_size=4))
def test_words_in_several_scripts_have_the_skeleton_of_one_script(sentences: list[list[str]]) -> None:
    mixed = " ".join(words[n] for n, words in enumerate(sentences))
    assert of_text(mixed).classes.tolist() == of_text("mr brt mn").classes.tolist(), mixed


@given(st.integers(0, 20))
def test_digits_do_not_count(digits: int) -> None:
    story = "मेरा भारत महान है " * 10
    assert of_text(story + "२०२४ 2024 " * digits).classes.tolist() == of_text(story).classes.tolist()


@pytest.mark.parametrize(
    ("one_spelling", "another"),
    [("தமிழ்", "tamizh"), ("பழம்", "pazham"), ("சொல்", "sol"), ("சொல்", "chol"), ("ଯାହା", "jaha"), ("जहाज़", "zahaaj")],
)
def test_letters_that_writers_mix_have_one_class(one_spelling: str, another: str) -> None:
    assert of_text(one_spelling).classes.tolist() == of_text(another).classes.tolist()


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 30))
def test_both_implementations_give_the_same_hashes(text: str, times: int) -> None:
    words = tokenize(text) * times or [b"a"]
    assert by_native_core(words) == sorted(set(hash_skeleton(make_skeleton(b" ".join(words)).classes).tolist()))


@pytest.mark.native
@given(st.text(st.sampled_from("abktknsകന്नकत्कبك ßé1\U0001d400")).map(str.encode) | st.binary())
def test_both_implementations_give_the_same_skeleton(normalised: bytes) -> None:
    classes, words = find_skeleton_parts(normalised)
    expected_classes, expected_words = find_skeleton_parts.reference(normalised)
    assert classes.tolist() == expected_classes.tolist() and words.tolist() == expected_words.tolist()


@pytest.mark.parametrize("language", SAMPLED)
def test_both_implementations_give_the_same_hashes_of_stories(language: Language) -> None:
    for text in STORIES[language]:
        words = tokenize(text) * 3 + tokenize(text)[::-1]
        assert by_native_core(words) == sorted(hash_skeleton(make_skeleton(b" ".join(words)).classes).tolist()), (
            language
        )


@given(st.integers(0, 40_000), st.integers(0, 2**32))
def test_a_sample_has_its_size(consonants_in_all: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).integers(0, 8, consonants_in_all).astype(np.uint8)
    distinct = len(np.unique(hash_grams(drawn, GRAM)))
    grams = max(consonants_in_all - GRAM + 1, 0)
    assert len(hash_skeleton(drawn)) == min(distinct, max(LEAST, grams // SHARE))


@pytest.mark.parametrize("language", SAMPLED)
def test_a_part_shares_hashes_with_its_work(language: Language) -> None:
    stories = [of_text(text).classes for text in STORIES[language]]
    part = stories[0]
    work = np.concatenate(stories * 2)
    shared = set(hash_skeleton(part).tolist()) & set(hash_skeleton(work).tolist())
    expected = min(len(part), LEAST) * len(part) // max(len(work), 1) // 4
    assert len(shared) >= expected, f"{len(shared)} hashes of a part of {len(part)} in {len(work)} consonants"


def test_signs_and_digits_have_no_class() -> None:
    assert {int(classify_consonants()[ord(letter)]) for letter in "ая5५ाि़्aeiouyh़ ّ"} == {NO_CONSONANT}
