"""Laws: digits and signs in place of letters change no word; numbers, and words that have digits, stay as they are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.text.look_alikes import DIGITS, SIGNS
from neardup.core.text.normalize import locate_words, tokenize
from neardup.records import Language

from tests.support.languages import ENGLISH, SAMPLED
from tests.support.sample_texts import STORIES

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGIT_OF = {letter: digit for digit, letter in DIGITS.items()}
SIGN_OF = {letter: sign for sign, letter in SIGNS.items()}
unhurried = settings(deadline=None)

words = st.text(st.sampled_from(LETTERS + 6 * "".join(DIGIT_OF)), min_size=3, max_size=12)
two_letters = st.text(st.sampled_from(LETTERS), max_size=2)
digits = st.text(st.sampled_from("0123456789"), min_size=1, max_size=4)


@unhurried
@given(words, st.sets(st.integers(1, 11)))
def test_digits_between_letters_are_read_as_letters(word: str, places: set[int]) -> None:
    places = {place for place in places if place < len(word) - 1}
    written = "".join(DIGIT_OF.get(c, c) if n in places else c for n, c in enumerate(word))
    assert tokenize(written) == tokenize(written.upper()) == [word.encode()], written


@unhurried
@given(
    st.text(st.sampled_from("".join(DIGIT_OF)), min_size=1, max_size=2), st.text(st.sampled_from(LETTERS), min_size=3)
)
def test_digits_before_three_letters_are_read_as_letters(start: str, rest: str) -> None:
    assert tokenize("".join(map(DIGIT_OF.__getitem__, start)) + rest) == [(start + rest).encode()]


@unhurried
@given(digits, two_letters, st.text(st.sampled_from(LETTERS)), digits)
def test_numbers_ordinals_units_and_numbered_names_stay(number: str, unit: str, name: str, after: str) -> None:
    for word in (number + unit, name + after):
        assert tokenize(word) == [word.encode()]


@pytest.mark.parametrize(
    "word",
    [
        "1st",
        "2nd",
        "4th",
        "90s",
        "1980s",
        "b2b",
        "mp3",
        "mp4",
        "k8s",
        "x86",
        "h264",
        "i18n",
        "co2",
        "3d",
        "4k",
        "1x1",
        "10km",
        "3pm",
    ],
)
def test_a_word_with_digits_stays(word: str) -> None:
    assert tokenize(word) == tokenize(word.upper()) == [word.encode()]


@unhurried
@given(words, st.sets(st.integers(1, 11)))
def test_signs_between_letters_are_read_as_letters(word: str, places: set[int]) -> None:
    places = {place for place in places if place < len(word) - 1}
    written = "".join(SIGN_OF.get(c, c) if n in places else c for n, c in enumerate(word))
    assert tokenize(written) == [word.encode()], written


@pytest.mark.parametrize("text", ["$100", "US$5", "us $", "@home", "at @", "me@1", "a @ b", "é@b", "क@ख", "a$\u0915"])
def test_a_sign_elsewhere_separates_words(text: str) -> None:
    assert b" ".join(tokenize(text)).decode() == " ".join(text.replace("@", " ").replace("$", " ").casefold().split())


@pytest.mark.parametrize("language", SAMPLED)
def test_only_words_from_a_to_z_are_read_in_another_way(language: Language) -> None:
    story = STORIES[language][0]
    assert tokenize(f"{story} h0use {story}") == [*tokenize(story), b"house", *tokenize(story)]
    letter = "é" if language == ENGLISH else next(c for c in story if c.isalpha())
    for word in (f"{letter}0{letter}", f"1{letter * 3}", f"{letter}x0x"):
        assert tokenize(word) == [word.encode()]


@unhurried
@given(st.text(st.sampled_from("ab0@$ \u200b\u0336éक"), max_size=12))
def test_the_places_of_words_are_those_of_the_tokens(text: str) -> None:
    places = locate_words(text)
    found = [tokenize(places.text[start:end]) for start, end in zip(places.starts, places.ends, strict=True)]
    assert found == [[word] for word in tokenize(text)]
