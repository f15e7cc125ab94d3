"""Laws: `locate_words` gives the offsets of a text's words, in order; and no cut splits a word or a grapheme cluster.

The `regex` package is the reference for grapheme clusters.
"""

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.text.normalize import Located, locate_words, tokenize
from neardup.records import Language

from tests.core.text.test_normalize import (
    PAGES,
    every_language,
    in_all_scripts,
    in_one_script,
    letters,
    thorough,
    unhurried,
)
from tests.support.graphemes import FAMILY, GRAPHEME_PARTS, boundaries
from tests.support.languages import TEXTS
from tests.support.sampling import some_of

any_text = st.one_of(
    in_one_script,
    in_all_scripts,
    st.text(),
    st.lists(
        st.one_of(st.sampled_from(GRAPHEME_PARTS), st.sampled_from([c for drawn in letters.values() for c in drawn]))
    ).map("".join),
)


def assert_located(text: str) -> Located:
    found = locate_words(text)
    places = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert found.text == unicodedata.normalize("NFC", text)
    assert [tokenize(found.text[start:end]) for start, end in places] == [[word] for word in tokenize(text)]
    assert places == sorted(places)
    cuts = found.cuts.tolist()
    assert cuts == sorted(cuts)
    assert {0, len(found.text)} <= set(cuts)
    assert not set(cuts) - boundaries(found.text), "a cut splits a character"
    return found


@thorough
@given(any_text)
def test_located_offsets_are_those_of_the_words(text: str) -> None:
    found = assert_located(text)
    inside = {at for start, end in zip(found.starts, found.ends, strict=True) for at in range(start + 1, end)}
    assert not inside.intersection(found.cuts.tolist()), "a cut splits a word"


@unhurried
@given(any_text, st.data())
def test_a_span_contains_its_words_and_has_cuts_at_both_ends(text: str, data: st.DataObject) -> None:
    found, words = locate_words(text), tokenize(text)
    first = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(first, len(words)))
    if first == end:
        return
    start, stop = found.find_span(first, end)
    assert {start, stop} <= set(found.cuts.tolist())
    assert start <= found.starts[first] < found.ends[end - 1] <= stop
    held = tokenize(found.text[start:stop])
    assert any(held[n : n + end - first] == words[first:end] for n in range(len(held)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_span_of_a_real_page_contains_only_its_words(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for form in ("NFC", "NFD"):
        found = assert_located(unicodedata.normalize(form, text))
        words = tokenize(text)
        for first in range(0, len(words) - 10, 7):
            start, stop = found.find_span(first, first + 10)
            assert tokenize(found.text[start:stop]) == words[first : first + 10]
            assert (start, stop) == (found.starts[first], found.ends[first + 9]), "the span has text beside its words"


@every_language
def test_the_golden_text_has_cuts_around_each_word(language: Language) -> None:
    found = assert_located(TEXTS[language])
    for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        assert {start, end} <= set(found.cuts.tolist()), found.text[start:end]


@pytest.mark.parametrize("sign", GRAPHEME_PARTS, ids=lambda sign: " ".join(f"{ord(c):x}" for c in sign))
def test_characters_beside_a_word_are_not_split(sign: str) -> None:
    for language in some_of(LANGUAGES, GRAPHEME_PARTS.index(sign), 3):
        word = TEXTS[language].split()[0]
        for text in (f"{sign}{word}", f"{word}{sign}", f"{word} {sign}{word}{sign} {word}", f"{FAMILY}{sign}{word}"):
            assert_located(text)


def test_a_span_includes_the_base_of_an_initial_mark() -> None:
    found = locate_words("अ 😀\u0301ब")
    assert found.text[slice(*found.find_span(1, 2))] == "😀\u0301ब"


def test_a_family_before_a_word_stays_whole() -> None:
    found = locate_words(f"क {FAMILY}ख {FAMILY}\u200dग")
    assert [found.text[slice(*found.find_span(n, n + 1))] for n in range(3)] == ["क", "ख", f"{FAMILY}\u200dग"]


def test_no_cut_splits_any_grapheme_cluster_of_unicode() -> None:
    drawn = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
    ]
    text = "".join(f" {c}x{c}." for c in drawn)
    found = locate_words(text)
    assert not set(found.cuts.tolist()) - boundaries(found.text)


@pytest.mark.parametrize("nothing", ["", " \n", "।!—😀", "\u200d", "\ud800"])
def test_a_text_without_words_has_no_offsets(nothing: str) -> None:
    assert len(assert_located(nothing).starts) == 0
