"""Laws: a page is marked as hidden if more than half of its story is not shown, whatever hides it, in all languages."""

import re
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.page import Page, PageFingerprinted, PageText, StoryText, fingerprint_page, split_file, text_of
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import visible_text
from neardup.core.text.normalize import tokens
from neardup.records import Language, Mark, MarkReason, Marks

from tests.support.disguises import DISGUISES, Disguise
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

# Without the joiners and zero-width spaces of the Telugu sample, of which some words would have too many.
WORDS = {language: re.sub("[\u200b-\u200d]", "", stories[0]).split()[:120] for language, stories in STORIES.items()}
HIDING = (
    'style="display:none"',
    'style="visibility:hidden"',
    "style='font-size:0'",
    'style="opacity:0"',
    'style="color:white"',
    'style="position:absolute;left:-9999px"',
    "class=x",
    "hidden",
)
SHEET = "<style>.x{display:none}</style>"
UNSEEN = {"zero-width space", "joiners", "soft hyphens", "invisible operators", "a stroke through each letter"}
FOLDED = {"Cyrillic look-alikes", "Greek look-alikes", "fullwidth letters", "mathematical letters", "small capitals"}


def characters(words: list[str]) -> int:
    return sum(map(len, words))


def marks_of(page: str, extraction: Extraction = Extraction()) -> Marks:  # noqa: B008 - frozen
    made = fingerprint_page(Page(page.encode()), extraction)
    split = split_file(page.encode(), extraction)
    assert made.marks == split.marks, "a page that is checked has other marks than one that is listed"
    return made.marks


@given(
    st.sampled_from(SAMPLED),
    st.lists(st.booleans(), min_size=120, max_size=120)
    | st.integers(50, 70).map(lambda n: [m < n for m in range(120)]),
    st.lists(st.sampled_from(HIDING), min_size=1),
)
def test_more_than_half_hidden_is_marked_and_less_is_not(
    language: Language, is_hidden: list[bool], ways: list[str]
) -> None:
    words = WORDS[language]
    hidden = [word for word, hides in zip(words, is_hidden, strict=True) if hides]
    parts = [
        f"<span {way}>{word}</span>" if hides else word
        for word, hides, way in zip(words, is_hidden, cycle(ways), strict=False)
    ]
    share = characters(hidden) / characters(words)
    expected = (Mark(MarkReason.HIDDEN, f"{100 * share:.0f} %"),) if share > 0.5 else ()
    menu = f"<nav style='display:none'>{' '.join(words)}</nav><script>{'x' * 9999}</script>"
    page = f"<html><head>{SHEET}</head><body>{menu}<article>{' '.join(parts)}</article>"
    assert marks_of(page, Extraction("article")) == expected, language


@pytest.mark.parametrize("language", SAMPLED)
def test_a_story_within_a_hidden_element_is_hidden(language: Language) -> None:
    text = STORIES[language][0]
    found = text_of(Page(f"<div style='display:none'><article>{text}</article></div>".encode()), Extraction("article"))
    assert isinstance(found, StoryText)
    assert found.marks == (Mark(MarkReason.HIDDEN, "100 %"),)
    assert tokens(found.text) == tokens(visible_text(text, Extraction())), "a story that alone is hidden is not read"


@pytest.mark.parametrize("language", SAMPLED)
def test_a_plain_page_has_no_mark(language: Language) -> None:
    for text in STORIES[language]:
        assert marks_of(f"{SHEET}<p style='color:red'>{text}</p>") == ()
        buttons = "".join(f"<button style='display:inline-block'>{word}</button> " for word in text.split())
        assert marks_of(f"<p>{buttons}</p>") == (), "the edges of inline blocks count as unseen letters"


@pytest.mark.parametrize(
    "disguise", [one for one in DISGUISES if one.name in UNSEEN | FOLDED], ids=lambda disguise: str(disguise.name)
)
def test_letters_in_disguise_are_marked(disguise: Disguise) -> None:
    for language in disguise.languages:
        made = fingerprint_page(Page(disguise.page(STORIES[language][0], language).encode()), Extraction())
        assert isinstance(made, PageFingerprinted), made
        assert [mark.reason for mark in made.marks] == [MarkReason.LOOK_ALIKES], language


@pytest.mark.parametrize("language", SAMPLED)
def test_control_characters_are_marked(language: Language) -> None:
    text = STORIES[language][0]
    made = split_file("\x02".join(text).encode(), Extraction())
    assert isinstance(made, PageText)
    assert made.marks == (Mark(MarkReason.CONTROLS, "50 %"),)
