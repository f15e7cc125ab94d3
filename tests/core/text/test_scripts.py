"""Laws: the script of a text is the one of more than half of its letters, by whichever way they are counted; its
language is detected in each shipped language, and a text in no known script has none.
"""

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.text.scripts import (
    BLOCK,
    ENGLISH,
    LANGUAGE_SAMPLE,
    UnknownScript,
    detect_language,
    find_most_frequent_script,
    find_script_of_block,
    find_script_of_most,
)
from neardup.records import Language

from tests.support.languages import SAMPLED, TEXTS
from tests.support.sample_texts import STORIES

PIECES = st.sampled_from([*TEXTS.values(), " ", "12, ", "…", "Привет", "漢字", "\U0001f600"]) | st.text(max_size=9)


def counted(text: str) -> str | None:
    """The script of more than half of the letters, one by one."""
    letters = Counter(
        script for c in text if (c.isalpha() or not c.isascii()) and (script := find_script_of_block(ord(c) // BLOCK))
    )
    return next((script for script, n in letters.items() if 2 * n > letters.total()), None)


@given(st.lists(PIECES).map("".join))
@example("")
@example("a" * 50 + "अ" * 50)
@example("a" * 50 + "अ" * 51)
def test_a_text_has_the_script_of_more_than_half_of_its_letters(text: str) -> None:
    assert find_script_of_most(text) == counted(text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_of_each_language_has_its_script(language: Language) -> None:
    assert find_script_of_most(TEXTS[language]) == SHIPPED[language].script.upper()


@pytest.mark.parametrize("language", SAMPLED)
def test_the_sample_stories_are_detected(language: Language) -> None:
    wrong = {text[:60] for text in STORIES[language] if detect_language(text) != language}
    assert not wrong, f"detected as another language than {language}: {wrong}"


@pytest.mark.parametrize("language", SHIPPED)
def test_every_shipped_language_is_among_those_of_its_script(language: Language) -> None:
    entry = SHIPPED[language]
    assert find_most_frequent_script(entry.golden) == entry.script.upper(), (
        f"the script of {language} has another name in Unicode"
    )


@given(st.sampled_from(SAMPLED), st.integers(0, LANGUAGE_SAMPLE // 4))
def test_digits_and_a_few_foreign_letters_change_nothing(language: Language, letters: int) -> None:
    text = STORIES[language][0]
    assert detect_language("漢" * letters + " 12 " * 10 + text) == detect_language(text)


@pytest.mark.parametrize("text", ["漢字仮名", "Ελληνικά γράμματα"])
def test_a_script_of_no_known_language_is_refused(text: str) -> None:
    with pytest.raises(UnknownScript, match="no known language is written in its script"):
        detect_language(text)


@given(st.text(st.characters(exclude_categories=["L"])))
def test_a_text_without_letters_counts_as_english(text: str) -> None:
    assert detect_language(text) == ENGLISH


@given(st.text())
def test_any_text_has_a_known_language_or_is_refused(text: str) -> None:
    with suppress(UnknownScript):
        assert detect_language(text) in SHIPPED
