"""Law: the text of a page is the one that the plainest way of taking it gives, whatever its markup and charset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.text.html import Extraction, NoStoryText, decode, page_text, visible_text
from neardup.records import Language, Skip
from selectolax.lexbor import LexborHTMLParser

from tests.support.html_pieces import BLOCKS, BROKEN, INVISIBLE, NOISE, TAGS, WORDS
from tests.support.languages import SAMPLED
from tests.support.paths import SAMPLES

STORY = Extraction("article .story, div.post-body", (".share", ".author-note"))
EXTRACTIONS = [
    Extraction(),
    STORY,
    Extraction("p", ("p",)),
    Extraction("", ("body", "div, b")),
    Extraction("b", ("i",)),
]
ATTRIBUTES = ["", "", "", "/", " hidden", ' class="story"', " class=share", " title='a<p>b'", " style"]
ATTRIBUTES += [" style='color: red'", ' STYLE="x:y; DISPLAY: none"', " style=visibility:hidden"]

opening = st.builds("<{}{}>".format, st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES))
closing = st.sampled_from(TAGS).map("</{}>".format)
element = st.builds(
    "<{0}{1}>{2}</{0}>".format, st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES), st.text("xक", max_size=2)
)
stray = st.sampled_from(WORDS) | opening | closing | element | st.sampled_from(BROKEN)
markup = st.recursive(
    st.lists(stray, max_size=8).map("".join),
    lambda inner: st.builds(
        "<{0}{1}>{2}{3}</{0}>{4}".format, *map(st.sampled_from, (TAGS, ATTRIBUTES)), inner, inner, inner
    ),
    max_leaves=12,
)
unhurried = settings(deadline=None)


def plainest(html: str, extraction: Extraction) -> str:
    """Visible text by selectors and text nodes alone, one thing after the other."""
    root = LexborHTMLParser(html).root
    assert root is not None
    for node in root.css(BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    for selector in (INVISIBLE, *extraction.strip):
        for node in reversed({node.mem_id: node for node in root.css(selector)}.values()):
            if node.mem_id == root.mem_id:
                return ""
            node.decompose()
    matches = root.css(extraction.body) if extraction.body else [root]
    if not matches:
        return Skip.NO_BODY
    ids = {node.mem_id for node in matches}
    outermost = []
    for node in matches:
        above = node.parent
        while above is not None and above.mem_id not in ids:
            above = above.parent
        if above is None:
            outermost.append(node)
    return "\n".join(node.text(separator="") for node in outermost)


def text_or_reason(html: str | bytes, extraction: Extraction) -> str:
    try:
        return visible_text(html, extraction)
    except NoStoryText as error:
        return error.reason


def page_or_reason(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    try:
        return page_text(body, content_type, extraction)
    except NoStoryText as error:
        return error.reason


def decoded_or_reason(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    try:
        return visible_text(decode(body, content_type), extraction)
    except NoStoryText as error:
        return error.reason


@unhurried
@given(markup, st.sampled_from(EXTRACTIONS))
def test_any_markup_reads_as_in_the_plainest_way(html: str, extraction: Extraction) -> None:
    want = plainest(html, extraction)
    assert text_or_reason(html, extraction) == want
    assert text_or_reason(html.encode(), extraction) == want


@unhurried
@given(
    st.lists(st.sampled_from(TAGS).map("<{}>".format) | st.sampled_from(WORDS + NOISE), max_size=30).map("".join)
    | markup,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "ascii"]),
    st.sampled_from([None, "text/html", "text/html; charset=utf-8", "text/html; charset=windows-1252"]),
    st.sampled_from([*EXTRACTIONS, Extraction(".ÿ"), Extraction("", (".ÿ",))]),
)
def test_a_page_reads_as_if_it_were_decoded_first(
    html: str, charset: str, content_type: str | None, extraction: Extraction
) -> None:
    body = f"{html}<b class=ÿ>x</b>".encode(charset, "ignore")
    assert page_or_reason(body, content_type, extraction) == decoded_or_reason(body, content_type, extraction)


@pytest.mark.parametrize("language", SAMPLED)
def test_real_pages_read_as_in_the_plainest_way(language: Language) -> None:
    for page in sorted((SAMPLES / "stories" / language).glob("*.html")):
        for extraction in EXTRACTIONS:
            want = plainest(page.read_text(), extraction)
            assert page_or_reason(page.read_bytes(), "text/html", extraction) == want, (page.name, extraction)
