"""Laws: whatever a text holds, no cell of a CSV file begins a formula, in whatever way a spreadsheet cuts and trims the
file; the text is still there, apostrophes aside; and what no spreadsheet would run is left as it is.
"""

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.languages import LANGUAGES
from neardup.moderation.export.guard import guarded
from neardup.records import Language

from tests.support.hostile_titles import TITLES
from tests.support.languages import TEXTS

SIGNS = "=+-@"
nasty = st.text(st.sampled_from("=+-@＝＋－＠﹢⁻−a'\";,\t\r\n \ufeff\u200b\u202e\u0301\u00a0\x00\x0bक"), max_size=12)
texts = nasty | st.text(st.characters(codec="utf-8")) | st.sampled_from(TITLES)


def would_run(cell: str) -> bool:
    """As the most careless spreadsheet would have it."""
    seen = [c for c in cell if c != '"' and unicodedata.category(c)[0] not in "CMZ"]
    return bool(seen) and unicodedata.normalize("NFKC", seen[0])[0] in f"{SIGNS}\u2212"


@given(texts)
@example("=")
@example(';""=1')
def test_no_part_of_a_cell_can_run(text: str) -> None:
    cell = guarded(text)
    for part in (cell, *re.split("[;\t\r\n]", cell)):
        assert not would_run(part), f"{cell!a} would run {part!a}"


@given(texts)
def test_the_text_is_still_there(text: str) -> None:
    assert guarded(text).replace("'", "") == text.replace("'", "")


@given(texts)
def test_what_is_guarded_needs_no_more(text: str) -> None:
    assert guarded(guarded(text)) == guarded(text)


def test_every_character_that_looks_like_a_sign_is_one() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if not 0xD800 <= code < 0xE000 and unicodedata.normalize("NFKC", character)[0] in SIGNS:
            assert guarded(f"{character}1") == f"'{character}1", ascii(character)


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_is_left_as_it_is(language: Language) -> None:
    for text in (TEXTS[language], f"{TEXTS[language]} - 2", f"({TEXTS[language]}; 1 + 1 = 2)", f"“{TEXTS[language]}”"):
        assert guarded(text) == text
