"""The language of a text is detected in each shipped language, and a text in no known script has none."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text.scripts import DETECTED_SAMPLE, ENGLISH, UnknownScript, detect_language, script_of_text
from neardup.languages import SHIPPED
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES


@pytest.mark.parametrize("language", SAMPLED)
def test_the_sample_stories_are_detected(language: Language) -> None:
    wrong = {text[:60] for text in STORIES[language] if detect_language(text) != language}
    assert not wrong, f"detected as another language than {language}: {wrong}"


@pytest.mark.parametrize("language", SHIPPED)
def test_every_shipped_language_is_among_those_of_its_script(language: Language) -> None:
    entry = SHIPPED[language]
    assert script_of_text(entry.golden) == entry.script.upper(), f"the script of {language} has another name in Unicode"


@given(st.sampled_from(SAMPLED), st.integers(0, DETECTED_SAMPLE // 4))
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
