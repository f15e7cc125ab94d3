"""Laws: a page that shows next to nothing is read as if it hid nothing, because a browser may show its story in a way
that is not known here; what a page hides beside a story, or a few words that it hides alone, are not read.  What may be
hidden within a story is read, and both it and the rest are read once more, apart.
"""

import pytest
from neardup.core.languages import LANGUAGES
from neardup.core.page import mark_page
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_markup
from neardup.core.text.normalize import tokenize
from neardup.records import Language, MarkReason

from tests.support.languages import TEXTS

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
