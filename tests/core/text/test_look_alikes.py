"""Laws: a story in letters that look the same has the same words; and what is no disguise stays."""

import unicodedata

import pytest
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.look_alikes import map_foreign_letters, map_forms, undisguise
from neardup.core.text.normalize import tokenize
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
