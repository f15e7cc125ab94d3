"""Laws: a page has one fingerprint, whether the native core reads it or Python, and whatever was read before; a text
has single spaces, whichever of the two writes it, and what it shows beside them is counted.
"""

import re
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.css.native_rendering import render_natively
from neardup.core.css.page_styles import find_style_sheets
from neardup.core.css.pieces import collapse_spaces, count_visible, read_spaced_text, read_spaced_text_in_python
from neardup.core.native import page as native_page
from neardup.core.page import Page, Unreadable, extract_story, fingerprint_story
from neardup.core.text.decoding import is_plain
from neardup.core.text.extraction import Extraction
from neardup.core.text.parsing import parse, parse_with_kept_parser
from selectolax.lexbor import LexborHTMLParser

from tests.support.random_pages import in_template, random_page
from tests.support.styled_pages import styled_page

pytestmark = pytest.mark.native
EXTRACTIONS = (
    Extraction(), Extraction("article, .x", (".y", "i")), Extraction("p", ("p p", "sup")), Extraction("", ("body",)),
    Extraction("div div, li", ("[title]",)), Extraction("p:first-child"),
)  # fmt: skip

pages = st.builds(
    lambda make, seed, oddity: make(Random(seed), oddity=oddity),
    st.sampled_from((random_page, styled_page)),
    st.integers(0, 1 << 64),
    st.sampled_from((0, 0.005, 0.02, 0.2)),
)


def read(page: Page, extraction: Extraction) -> tuple[object, ...]:
    """The fingerprint of a page, and the parts of its story, with why it was rendered, but not by what."""
    found = extract_story(page, extraction)
    made = found if isinstance(found, Unreadable) else fingerprint_story(page, found)
    reasons = [rendered and rendered.reason for rendered in (made.rendered, found.rendered)]
    made = replace(made, rendered=None)
    if isinstance(found, Unreadable):
        return made, *reasons, replace(found, rendered=None)
    text, *rest, _ = found
    return made, *reasons, text.utf8, text.counts, text.marks, *rest


def both_ways(body: bytes, extraction: Extraction) -> list[tuple[object, ...]]:
    """What the native core and Python make of a page."""
    page = Page(body, "text/html")
    native = read(page, extraction)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.core.text.html.read_plain_story", lambda *_: None)
        patch.setattr("neardup.core.text.html.render_natively", lambda *_: None)
        patch.setattr("neardup.core.text.html.parse_with_kept_parser", lambda *_, **__: None)
        return [native, read(page, extraction)]


@settings(deadline=None)
@given(pages, st.sampled_from(EXTRACTIONS))
@example(in_template("<p>one</p>").encode(), Extraction())  # the native core renders it, so each function is called
@example(b"<x\xff>one<style>p { margin: 0 }</style><script>" + b"x" * 4096, Extraction())  # a tag that is not UTF-8
@example(b"one<b style='position:absolute; left:9999px'>\xae", Extraction())  # hidden, and not UTF-8
def test_both_roads_make_the_same_of_any_page(body: bytes, extraction: Extraction) -> None:
    native, reference = both_ways(body, extraction)
    assert native == reference


def test_the_native_core_renders_a_site_s_template() -> None:
    root = parse(in_template("<p>one</p> <p>two</p>"))
    assert root is not None
    found = render_natively(root, [root], find_style_sheets(root))
    assert found is not None and "\none\n \ntwo\n" in found.utf8.decode()


@given(st.lists(pages, min_size=1, max_size=4))
def test_a_page_is_parsed_alike_whatever_was_parsed_before(bodies: list[bytes]) -> None:
    for body in bodies:
        brief, root = parse_with_kept_parser(body), parse(body)
        assert brief is None or (root is not None and brief.html == root.html)
        brief, root = parse_with_kept_parser(body, scripting=False), LexborHTMLParser(body).root
        assert brief is None or (root is not None and brief.html == root.html)


def test_a_library_with_other_functions_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_page, "FUNCTIONS", {"first_child": "lxb_no_such_function"})
    why = native_page.load_functions()
    assert why is not None and why.startswith("the native core cannot read what selectolax "), why


@given(st.binary() | pages)
def test_both_implementations_find_the_same_pages_plain(body: bytes) -> None:
    assert is_plain(body) == is_plain.reference(body)


WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3100))))
texts = st.text(st.sampled_from(f" \n\t\f\v{WHITE_SPACE}aé\u0915\u093f\U0001f600") | st.characters(codec="utf-8"))


@given(texts)
def test_runs_of_white_space_of_html_are_single_spaces(text: str) -> None:
    assert collapse_spaces(text) == re.sub(r"[ \t\n\r\f]+", " ", text)
    assert count_visible(text) == len(re.sub(r"\s+", "", text))


@given(st.lists(texts, max_size=4))
def test_both_implementations_write_the_same_text_of_an_element(parts: list[str]) -> None:
    root = parse("<!doctype html><p>" + "<b>".join(part.replace("<", "").replace("&", "") for part in parts))
    assert root is not None
    for element in root.traverse():
        assert read_spaced_text(element) == read_spaced_text_in_python(element)
