"""Law: the script of a text is the one of more than half of its letters, by whichever way they are counted."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.text.scripts import BLOCK, script_of_block, script_of_most
from neardup.languages import LANGUAGES, SHIPPED
from neardup.records import Language

from tests.support.languages import TEXTS

PIECES = st.sampled_from([*TEXTS.values(), " ", "12, ", "…", "Привет", "漢字", "\U0001f600"]) | st.text(max_size=9)


def counted(text: str) -> str | None:
    """The script of more than half of the letters, one by one."""
    letters = Counter(
        script for c in text if (c.isalpha() or not c.isascii()) and (script := script_of_block(ord(c) // BLOCK))
    )
    return next((script for script, n in letters.items() if 2 * n > letters.total()), None)


@given(st.lists(PIECES).map("".join))
@example("")
@example("a" * 50 + "अ" * 50)
@example("a" * 50 + "अ" * 51)
def test_a_text_has_the_script_of_more_than_half_of_its_letters(text: str) -> None:
    assert script_of_most(text) == counted(text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_of_each_language_has_its_script(language: Language) -> None:
    assert script_of_most(TEXTS[language]) == SHIPPED[language].script.upper()
