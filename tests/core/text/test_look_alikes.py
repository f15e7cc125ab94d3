"""Laws: a story in letters that look the same has the same words, and what is no disguise stays; digits and signs in
place of letters change no word, and numbers and words that have digits stay as they are.
"""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.look_alikes import DIGITS, SIGNS, map_foreign_letters, map_forms, undisguise
from neardup.core.text.normalize import locate_words, tokenize
from neardup.records import Language

from tests.support.languages import ENGLISH, SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.sampling import crossed

CYRILLIC = str.maketrans("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ")
GREEK = str.maketrans("ovAEZIKMNOTXY", "ονΑΕΖΙΚΜΝΟΤΧΥ")
SMALL_CAPITALS = str.maketrans("abcdeghjkmnoprtuvwz", "ᴀʙᴄᴅᴇɢʜᴊᴋᴍɴᴏᴘʀᴛᴜᴠᴡᴢ")


def shifted(first: int) -> dict[int, int]:
    """The letters and digits of a block that has them from `first` on, in the order of ASCII."""
    return {n: first + n - 0x21 for n in range(0x21, 0x7F)}


def letters_from(capital: int, small: int) -> dict[int, int]:
    return {0x41 + n: capital + n for n in range(26)} | {0x61 + n: small + n for n in range(26)}


OF_LATIN = {
    "Cyrillic letters": CYRILLIC,
    "Greek letters": GREEK,
    "fullwidth letters": shifted(0xFF01),
    "mathematical letters": letters_from(0x1D400, 0x1D41A),
    "monospaced letters": letters_from(0x1D670, 0x1D68A),
    "circled letters": letters_from(0x24B6, 0x24D0),
    "small capitals": SMALL_CAPITALS,
    "squared letters": letters_from(0x1F170, 0x1F170),
}
ANY = {
    sign: chr(code)
    for sign, code in {
        "joiner": 0x200D, "zero-width space": 0x200B, "soft hyphen": 0xAD, "left-to-right mark": 0x200E,
        "function application": 0x2061, "tag": 0xE0061, "variation selector": 0xFE0E, "annotation": 0xFFF9,
        "noncharacter": 0xFDD0, "control": 0x01, "delete": 0x7F, "stroke": 0x0336, "enclosing circle": 0x20DD,
    }.items()
}  # fmt: skip


def after_each_letter(text: str, sign: str) -> str:
    return "".join(c + sign if c.isalpha() else c for c in text)


@pytest.mark.parametrize("disguise", OF_LATIN)
def test_latin_letters_of_another_kind_are_read_as_latin(disguise: str) -> None:
    for story in STORIES[ENGLISH]:
        assert tokenize(story.translate(OF_LATIN[disguise])) == tokenize(story), disguise


def test_signs_that_show_nothing_or_cross_out_change_no_word() -> None:
    for sign, language in crossed(list(ANY), SAMPLED, each=2):
        story = STORIES[language][0].replace("\u200d", "")  # a chillu: a letter, a virama and this joiner, side by side
        assert tokenize(after_each_letter(story, ANY[sign])) == tokenize(story), f"{sign} in {language}"


@pytest.mark.parametrize("language", SAMPLED)
def test_a_page_with_control_characters_is_text(language: Language) -> None:
    story = STORIES[language][0].replace("\u200d", "")
    page = f"<p>{after_each_letter(story, ANY['control'])}</p>".encode()
    assert tokenize(extract_page_text(page, None, Extraction())) == tokenize(story)


@pytest.mark.parametrize("two", ["अाम", "अाेर", "अाैर", "एेसा", "আমি".replace("আ", "অা"), "અામ", "ଅାମ", "ਅਾਮ", "ഒാണം"])
def test_vowels_written_in_two_signs_are_one_letter(two: str) -> None:
    (word,) = tokenize(two)
    assert len(word.decode()) < len(two)


@pytest.mark.parametrize("text", ["привет мир", "λόγος", "ελληνικά", "Ճանապարհ"])
def test_words_of_another_script_stay(text: str) -> None:
    assert undisguise(text, map_forms()) == text
    assert tokenize(text.upper()) == tokenize(text)


def test_capitals_of_lisu_are_read_as_latin() -> None:
    capitals = str.maketrans("ABCDEFGHIJKLMNOPRSTUVWXYZ", "ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ")
    text = STORIES[ENGLISH][0].replace("q", "k").replace("Q", "k")  # Lisu has no letter like it
    assert tokenize(text.upper().translate(capitals)) == tokenize(text)


def test_no_letter_of_a_shipped_script_is_a_disguise() -> None:
    assert not [
        chr(c)
        for c in (*map_forms(), *map_foreign_letters())
        if 0x0900 <= c < 0x0D80 and unicodedata.category(chr(c))[0] in "LM"
    ]


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
