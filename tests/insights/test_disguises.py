"""Laws: a disguise changes the share of the words that its strength says; Latin letters leave none of another script,
and a story in them is found, whole or in part, in every language; a scanned story is found, too.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import compare_texts, share_passages
from neardup.core.verify.text import Text
from neardup.insights.disguises import (
    DISGUISED_EDITS,
    add_filler,
    disguise_words,
    leave_out,
    misread,
    paraphrase,
    replace_word,
    shuffle_words,
    write_in_latin,
    write_some_in_latin,
)
from neardup.records import Language

from tests.support.languages import ENGLISH, SAMPLED
from tests.support.sample_texts import AROUND, STORIES, rng, story

INDIC = [language for language in SAMPLED if language != ENGLISH]
strengths = st.floats(0, 1)
every_language = pytest.mark.parametrize("language", SAMPLED)


@every_language
@given(strength=strengths)
def test_the_share_of_words_that_the_strength_says_is_changed(language: Language, strength: float) -> None:
    words = story(language).split()
    wanted = strength * len(words)
    others = AROUND[language]

    replaced, left, filled = (
        disguise_words(change)(story(language), strength, others, rng()).split()
        for change in (replace_word, leave_out, add_filler)
    )
    changed = sum(a != b for a, b in zip(words, replaced, strict=True))
    assert max(abs(n - wanted) for n in (changed, len(words) - len(left), len(filled) - len(words))) <= 1


@every_language
def test_shuffling_keeps_the_words_and_a_paraphrase_their_number(language: Language) -> None:
    words = story(language).split()
    shuffled = shuffle_words(story(language), 2 / 3, AROUND[language], rng()).split()
    assert shuffled != words and sorted(shuffled) == sorted(words)
    assert all(sorted(shuffled[at : at + 3]) == sorted(words[at : at + 3]) for at in range(0, len(words), 3))
    assert len(paraphrase(story(language), 0.35, AROUND[language], rng()).split()) == len(words)


@pytest.mark.parametrize("language", INDIC)
def test_a_story_in_latin_letters_has_no_letter_of_another_script(language: Language) -> None:
    written = disguise_words(write_in_latin)(story(language), 1, AROUND[language], rng())
    assert not [letter for letter in written if letter.isalpha() and ord(letter) > 0x24F], written[:200]


def is_found(text: str, copy: str | None) -> bool:
    """Whether passages nominate a copy, and the texts verify it."""
    assert copy is not None
    a, b = Text(text), Text(copy)
    found = compare_texts(a, b, Thresholds(), is_of_one_language=True)
    return found.kind is not None and share_passages(a, b, NO_HASHES)


@pytest.mark.parametrize("strength", [0.5, 1])
@pytest.mark.parametrize("language", INDIC)
def test_a_story_in_latin_letters_is_found_with_a_tenth_replaced(language: Language, strength: float) -> None:
    texts = [text for text in STORIES[language] if len(text.split()) >= 150]
    copies = [write_some_in_latin(text, strength, AROUND[language], Random(n)) for n, text in enumerate(texts)]
    found = sum(map(is_found, texts, copies))
    assert found >= len(texts) - 1, f"{found} of {len(texts)}"


@every_language
def test_a_story_is_found_with_a_twentieth_of_its_letters_misread(language: Language) -> None:
    texts = [text for text in STORIES[language] if len(text.split()) >= 150]
    copies = [misread(text, 0.05, AROUND[language], Random(n)) for n, text in enumerate(texts)]
    found = sum(map(is_found, texts, copies))
    assert found >= len(texts) - 1, f"{found} of {len(texts)}"


def test_each_disguise_has_its_own_name_in_each_strength() -> None:
    names = [edit.name for edit in DISGUISED_EDITS]
    assert len(set(names)) == len(names) >= 20
