"""Laws: without a parser the words of a page are the same; a page over a limit is read up to it, and says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.page import Page, PageFingerprinted, PageStory, extract_story
from neardup.core.text.decoding import MOST_CHARACTERS, read_unparsed
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import MOST_TAGS, extract_page, extract_visible_text
from neardup.core.text.normalize import tokenize
from neardup.records import Language, Limit, Mark, MarkReason

from tests.support.builders import fingerprint_page
from tests.support.languages import TEXTS

WHOLE = Extraction()
WORDS = st.sampled_from([" ", *(word for text in TEXTS.values() for word in text.split())])
PIECES = st.one_of(
    WORDS,
    st.tuples(st.sampled_from(["b", "i", "span", "p", "div", "h2"]), WORDS).map(
        lambda tag: f"<{tag[0]}>{tag[1]}</{tag[0]}>"
    ),
    st.sampled_from(
        ["<br>", "<BR/>", "<!-- c -->", "<script>a < b</script>", "<style>p {}</style>", "&amp;", "&#2309;"]
    ),
    WORDS.map(lambda word: f"""<p title="{word}>" class='"'>{word}</p>"""),
)


@given(st.lists(PIECES).map("".join))
def test_the_words_are_those_of_the_parsed_page(markup: str) -> None:
    assert tokenize(read_unparsed(markup)) == tokenize(extract_visible_text(f"<body>{markup}", WHOLE))


@pytest.mark.parametrize("unclosed", ["<!-- ", "<script>", "<style> ", "<textarea><script></textarea>", '<a title="'])
def test_what_does_not_end_hides_no_story(unclosed: str) -> None:
    story = tokenize(TEXTS[LANGUAGES[0]])
    assert tokenize(read_unparsed(f"{unclosed}{TEXTS[LANGUAGES[0]]}"))[-len(story) + 1 :] == story[1:]


def test_a_text_is_read_up_to_its_limit() -> None:
    assert len(read_unparsed("अ " * MOST_CHARACTERS)) == MOST_CHARACTERS


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_truncated_story_has_the_fingerprint_of_the_part_that_was_read(language: Language) -> None:
    text = f"{TEXTS[language]} {TEXTS[language]}"
    whole = fingerprint_page(Page(f"<p>{text}</p>".encode()), WHOLE)
    assert isinstance(whole, PageFingerprinted)
    assert MarkReason.TRUNCATED not in {mark.reason for mark in whole.marks}
    for page, limit in (
        (Page(f"<p>{text}</p>".encode(), is_cut=True), Limit.SIZE),
        (Page(f"<p>{text}</p>{'<i></i>' * MOST_TAGS}".encode()), Limit.TAGS),
    ):
        made = fingerprint_page(page, WHOLE)
        assert isinstance(made, PageFingerprinted)
        assert made.fingerprint == whole.fingerprint
        assert made.marks == (Mark(MarkReason.TRUNCATED, limit), *whole.marks), limit
    unparsed = extract_story(Page(f"<p>{text}</p>".encode()), WHOLE, parsed=False)
    assert isinstance(unparsed, PageStory)
    assert (unparsed.text.words, unparsed.text.page_marks) == (
        tokenize(text),
        (Mark(MarkReason.TRUNCATED, Limit.BUDGET),),
    )


def test_pages_within_too_many_others_are_left_out() -> None:
    markup, limits = "<p>innermost</p>", []
    for _ in range(10):
        markup = f"<template shadowrootmode=open><p>outer</p><div>{markup}</div></template>"
        limits.append(extract_page(f"<div>{markup}</div>".encode(), None, WHOLE).limit)
    assert limits == [None] * 8 + [Limit.NESTING] * 2
