"""Laws: no cell of a CSV file begins a formula, however a spreadsheet splits and trims the file; the text is unchanged
except for added apostrophes; and harmless text is unchanged altogether.
"""

import re
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.moderation.export.formats import guard_text
from neardup.records import Language

from tests.support.hostile_titles import TITLES
from tests.support.languages import TEXTS

SIGNS = "=+-@"
hostile = st.text(st.sampled_from("=+-@＝＋－＠﹢⁻−a'\";,\t\r\n \ufeff\u200b\u202e\u0301\u00a0\x00\x0bक"), max_size=12)
texts = hostile | st.text(st.characters(codec="utf-8")) | st.sampled_from(TITLES)


def would_run(cell: str) -> bool:
    """Whether the most permissive spreadsheet would run a cell as a formula."""
    seen = [c for c in cell if c != '"' and unicodedata.category(c)[0] not in "CMZ"]
    return bool(seen) and unicodedata.normalize("NFKC", seen[0])[0] in f"{SIGNS}\u2212"


@given(texts)
@example("=")
@example(';""=1')
def test_no_part_of_a_cell_runs_as_a_formula(text: str) -> None:
    cell = guard_text(text)
    for part in (cell, *re.split("[;\t\r\n]", cell)):
        assert not would_run(part), f"{cell!a} would run {part!a}"


@given(texts)
def test_guarding_only_adds_apostrophes(text: str) -> None:
    assert guard_text(text).replace("'", "") == text.replace("'", "")


@given(texts)
def test_guarding_is_idempotent(text: str) -> None:
    assert guard_text(guard_text(text)) == guard_text(text)


def test_compatibility_forms_of_signs_are_guarded() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if not 0xD800 <= code < 0xE000 and unicodedata.normalize("NFKC", character)[0] in SIGNS:
            assert guard_text(f"{character}1") == f"'{character}1", ascii(character)


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_is_unchanged(language: Language) -> None:
    for text in (TEXTS[language], f"{TEXTS[language]} - 2", f"({TEXTS[language]}; 1 + 1 = 2)", f"“{TEXTS[language]}”"):
        assert guard_text(text) == text
