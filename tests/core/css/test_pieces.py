"""Laws: a text has single spaces, whichever implementation writes it, and what it shows beside them is counted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.css.pieces import collapse_spaces, count_visible, read_spaced_text, read_spaced_text_in_python
from neardup.core.text.parsing import parse

WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3100))))
texts = st.text(st.sampled_from(f" \n\t\f\v{WHITE_SPACE}aé\u0915\u093f\U0001f600") | st.characters(codec="utf-8"))


@given(texts)
def test_runs_of_white_space_of_html_are_single_spaces(text: str) -> None:
    assert collapse_spaces(text) == re.sub(r"[ \t\n\r\f]+", " ", text)
    assert count_visible(text) == len(re.sub(r"\s+", "", text))


@pytest.mark.native
@given(st.lists(texts, max_size=4))
def test_both_implementations_write_the_same_text_of_an_element(parts: list[str]) -> None:
    root = parse("<!doctype html><p>" + "<b>".join(part.replace("<", "").replace("&", "") for part in parts))
    assert root is not None
    for element in root.traverse():
        assert read_spaced_text(element) == read_spaced_text_in_python(element)
