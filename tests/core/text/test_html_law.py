"""Laws: the text of a page that hides nothing equals that of a simple reference implementation, whatever its markup and
charset; and rendering such a page gives the same words.

A page that shows next to nothing is read as if it hid nothing, because a browser may show its story in a way that is
not known here; what a page hides beside a story, or a few words that it hides alone, are not read.  What may be hidden
within a story is read, and both it and the rest are read once more, apart.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.page import mark_page
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_markup, extract_page_text, extract_visible_text
from neardup.core.text.normalize import tokenize
from neardup.records import Language, MarkReason, Skip
from selectolax.lexbor import LexborHTMLParser

from tests.support.languages import SAMPLED, TEXTS
from tests.support.paths import SAMPLES
from tests.support.random_pages import BLOCKS, BROKEN, INVISIBLE, NOISE, TAGS, WORDS

STORY = Extraction("article .story, div.post-body", (".share", ".author-note"))
EXTRACTIONS = [
    Extraction(),
    STORY,
    Extraction("p", ("p",)),
    Extraction("", ("body", "div, b")),
    Extraction("b", ("i",)),
]
ATTRIBUTES = ["", "", "", "/", ' class="story"', " class=share", " title='a<p>b'", " style", " style='color: red'"]

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
LONG = "कमल " * 140  # 560 characters, but 1,400 bytes
unhurried = settings(deadline=None)


def reference_text(html: str, extraction: Extraction) -> str:
    """Visible text by selectors and text nodes alone, one step at a time."""
    root = LexborHTMLParser(html, scripting=True).root  # what stands in `noscript` is one text, as in a browser
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
        return extract_visible_text(html, extraction)
    except NoStoryText as error:
        return error.reason


def words_of(html: str, extraction: Extraction) -> list[bytes]:
    """The words of a page; none if it has no story."""
    try:
        return tokenize(extract_visible_text(html, extraction))
    except NoStoryText:
        return []


def page_or_reason(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    try:
        return extract_page_text(body, content_type, extraction)
    except NoStoryText as error:
        return error.reason


def decoded_or_reason(body: bytes, content_type: str | None, extraction: Extraction) -> str:
    try:
        return extract_visible_text(decode(body, content_type), extraction)
    except NoStoryText as error:
        return error.reason


@unhurried
@given(markup, st.sampled_from(EXTRACTIONS))
@example(f"<rt>{LONG}</rt>", Extraction())
@example(f"<select>{LONG}</select>", Extraction())
@example("<noscript>क</noscript>", Extraction())
def test_visible_text_matches_the_reference_for_any_markup(html: str, extraction: Extraction) -> None:
    expected = reference_text(html, extraction)
    with pytest.MonkeyPatch.context() as patch:  # the reference does not render a page with a long text in a list,
        patch.setattr("neardup.core.text.html.find_reason_to_render", lambda *_: None)
        patch.setattr("neardup.core.text.html._is_nearly_empty", lambda _: False)  # nor one that shows hardly anything
        assert text_or_reason(html, extraction) == expected
        assert text_or_reason(html.encode(), extraction) == expected


@unhurried
@given(markup, st.sampled_from(EXTRACTIONS))
@example("<select></</select><b>कल</b>", Extraction("b"))  # the list is not closed, so the story is in it
def test_a_page_that_hides_nothing_has_the_same_words_when_it_is_rendered(html: str, extraction: Extraction) -> None:
    words = words_of(html, extraction)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.core.text.html.find_reason_to_render", lambda *_: "the test")
        assert words_of(html, extraction) == words


@unhurried
@given(
    st.lists(st.sampled_from(TAGS).map("<{}>".format) | st.sampled_from(WORDS + NOISE), max_size=30).map("".join)
    | markup,
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "ascii"]),
    st.sampled_from([None, "text/html", "text/html; charset=utf-8", "text/html; charset=windows-1252"]),
    st.sampled_from([*EXTRACTIONS, Extraction(".ÿ"), Extraction("", (".ÿ",))]),
)
@example(f"<rt>{LONG}</rt>", "utf-8", None, Extraction())
def test_page_text_equals_that_of_the_decoded_page(
    html: str, charset: str, content_type: str | None, extraction: Extraction
) -> None:
    body = f"{html}<b class=ÿ>x</b>".encode(charset, "ignore")
    assert page_or_reason(body, content_type, extraction) == decoded_or_reason(body, content_type, extraction)


@pytest.mark.parametrize("language", SAMPLED)
def test_real_pages_read_as_in_the_plainest_way(language: Language) -> None:
    for page in sorted((SAMPLES / "stories" / language).glob("*.html")):
        for extraction in EXTRACTIONS:
            expected = reference_text(page.read_text(), extraction)
            assert page_or_reason(page.read_bytes(), "text/html", extraction) == expected, (page.name, extraction)


WHOLE = Extraction()
# Each of these shows the story in a browser; %s is the story.
SHOWN = [
    "<style>@keyframes a {to {opacity: 1}} p {opacity: 0; animation: a 1s forwards}</style><p>%s</p>",
    "<style>.js p {visibility: hidden}</style><div class=js><p>%s</p></div><script>show()</script>",
    "<style>p {display: none} @layer own {p {display: block !important}}</style><p>%s</p>",
]
HIDDEN = ["<p style='display: none'>%s</p>", "<style>p:hover::before {content: '%s'}</style><p hidden></p>"]
every_language = pytest.mark.parametrize("language", LANGUAGES)


def story(language: Language) -> str:
    """A text of at least 600 letters."""
    return " ".join([TEXTS[language]] * (600 // len(TEXTS[language].replace(" ", "")) + 1))


def words(html: str) -> list[bytes]:
    return tokenize(extract_markup(html, WHOLE).text)


@every_language
@pytest.mark.parametrize("page", SHOWN, ids=["animation", "script", "layer"])
def test_a_story_shown_in_an_unknown_way_is_read(language: Language, page: str) -> None:
    text = story(language)
    assert words(page % text) == tokenize(text), "the story is not read"


@every_language
@pytest.mark.parametrize("page", HIDDEN, ids=["style", "style sheet"])
def test_the_page_is_marked_as_hidden(language: Language, page: str) -> None:
    found = extract_markup(f"<p>{TEXTS[language][:20]}</p>{page % story(language)}", WHOLE)
    assert [mark.reason for mark in mark_page(found)] == [MarkReason.HIDDEN]


@every_language
def test_what_is_hidden_beside_a_story_is_not_read(language: Language) -> None:
    text = story(language)
    assert words(f"<p>{text}</p><p style='display: none'>{text} {text}</p>") == tokenize(text)


COVER = "<style>.x {position: relative} .x::%s {content: ''; position: absolute; inset: 0; background: white}</style>"


@every_language
@pytest.mark.parametrize("pseudo", ["before", "after"])
def test_what_lies_under_generated_content_is_read_apart(language: Language, pseudo: str) -> None:
    covered, shown = (story(language).split()[n::2] for n in range(2))
    pairs = list(zip(covered, shown, strict=False))
    page = COVER % pseudo + " ".join(f"<span class=x>{under}</span> {beside}" for under, beside in pairs)
    each = [tokenize(" ".join(column)) for column in zip(*pairs, strict=True)]
    whole = tokenize(" ".join(" ".join(pair) for pair in pairs))
    found = words(page)
    assert found[: len(whole)] == whole
    assert found[len(whole) :] in (each[0] + each[1], each[1] + each[0]), "the parts are not read apart"


@every_language
def test_a_few_hidden_words_are_not_read(language: Language) -> None:
    assert words(f"<p style='display: none'>{TEXTS[language][:100]}</p>") == []


def test_scripts_and_styles_are_never_read() -> None:
    text = story(LANGUAGES[0])
    page = f"<style>p {{opacity: 0}}</style><script>{text}</script><template>{text}</template><p>{text}</p>"
    assert words(page) == tokenize(text)
