"""Laws: page work needs nothing of the world, and its halves make the whole; a page is marked as hidden if more than
half of its story is not shown, whatever hides it, in all languages.
"""

import re
import subprocess
import sys
import unicodedata
from hashlib import sha256
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.page import (
    MIN_WORDS,
    Page,
    PageFingerprinted,
    PageStory,
    Unreadable,
    extract_story,
    make_comparable,
    prepare,
    read_file,
)
from neardup.core.text.disguise import mark_text
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import cut_opening, extract_visible_text
from neardup.core.text.normalize import tokenize
from neardup.core.text.scripts import count_characters
from neardup.core.verify.text import Text
from neardup.records import Language, Limit, Mark, MarkReason, Marks, Skip

from tests.support.builders import fingerprint_page
from tests.support.disguises import DISGUISES, Disguise
from tests.support.languages import SAMPLED, TEXTS
from tests.support.sample_texts import STORIES

WHOLE = Extraction()
FOREIGN = ("pycurl", "botocore", "sqlite3", "asyncio", "redis", "pydantic")


def test_page_work_imports_nothing_of_the_world() -> None:
    program = f"import sys, neardup.core.page; print(*(name for name in {FOREIGN!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "a cluster's workers would need these"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_and_its_text_give_one_fingerprint(language: Language) -> None:
    text = f"{TEXTS[language]} {TEXTS[language]}"
    page = Page(f"<p>{text}</p>".encode(), "text/html; charset=utf-8", '"e"')
    words, marks = tokenize(text), mark_text(text, count_characters(text))
    visible = sum(map(len, text.split()))
    signs = sum("VOWEL SIGN" in unicodedata.name(c, "") or "VIRAMA" in unicodedata.name(c, "") for c in text)
    made = fingerprint_page(page, WHOLE)
    assert isinstance(made, PageFingerprinted) and made.measures is not None
    assert made.measures == pytest.approx((len(words) / visible, signs / visible, 0, 0), rel=0.1)
    assert made.text_sha256 == sha256(text.encode()).digest()
    assert replace(made, measures=None, text_sha256=None) == PageFingerprinted(
        fingerprint(words), '"e"', len(page.body), None, cut_opening(text), SHIPPED[language].script.upper(), marks
    )
    for read in (read_file(text.encode(), WHOLE), prepare(Text(text)), read_file(page.body, WHOLE)):
        assert isinstance(read, Text)
        assert read.written.strip() == text
        assert (read.words, read.fingerprint, read.marks) == (words, fingerprint(words), marks), "a check reads others"
        assert read.sha256 == made.text_sha256, "a check hashes another text"


@pytest.mark.parametrize(
    ("body", "reason"), [(b"", Skip.EMPTY), (b"<p></p>", Skip.EMPTY), (b"\x89PNG" + bytes(1000), Skip.NOT_TEXT)]
)
def test_a_page_without_text_gives_its_reason(body: bytes, reason: Skip) -> None:
    assert fingerprint_page(Page(body), WHOLE) == Unreadable(reason)


def test_a_page_without_the_body_gives_its_reason() -> None:
    assert extract_story(Page(b"<p>some words</p>"), Extraction(".story")) == Unreadable(Skip.NO_BODY)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_that_the_parser_fails_on_is_compared_by_its_text(
    language: Language, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Page(f"<p style='color: red'>{2 * TEXTS[language]}</p>".encode(), "text/html; charset=utf-8")
    read = fingerprint_page(page, WHOLE)
    for name in ("parse", "parse_with_kept_parser"):
        monkeypatch.setattr(f"neardup.core.text.html.{name}", lambda _: 1 // 0)
    made, checked = fingerprint_page(page, WHOLE), read_file(page.body, WHOLE)
    assert isinstance(read, PageFingerprinted) and isinstance(made, PageFingerprinted), "the copy is hidden"
    assert isinstance(checked, Text), "the copy is hidden from a check"
    assert made.fingerprint == read.fingerprint == checked.fingerprint
    assert made.marks == checked.marks == (Mark(MarkReason.TRUNCATED, Limit.ERROR), *read.marks)
    assert capsys.readouterr().err.count("ZeroDivisionError") == 2, "the error is not in the log"


def test_a_page_is_not_blamed_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise MemoryError

    for name in ("parse", "parse_with_kept_parser"):
        monkeypatch.setattr(f"neardup.core.text.html.{name}", fail)
    with pytest.raises(MemoryError):
        fingerprint_page(Page(b"<p>some words</p>"), WHOLE)


@pytest.mark.parametrize("words", [1, MIN_WORDS - 1, MIN_WORDS])
def test_few_words_are_compared_but_not_fingerprinted(words: int) -> None:
    text = " ".join(f"w{n}" for n in range(words))
    made, prepared = fingerprint_page(Page(text.encode()), WHOLE), prepare(Text(text))
    assert isinstance(make_comparable(Text(text)), Text)
    if words < MIN_WORDS:
        assert made == prepared == Unreadable(Skip.TOO_SHORT)
    else:
        assert isinstance(made, PageFingerprinted) and isinstance(prepared, Text)


def test_letters_that_are_all_dropped_make_no_story() -> None:
    fillers = 200 * "\u3164 "  # HANGUL FILLER, a letter that no reader sees
    for read in (
        fingerprint_page(Page(fillers.encode()), WHOLE),
        prepare(Text(fillers)),
        make_comparable(Text(fillers)),
    ):
        assert isinstance(read, Unreadable) and read.reason is Skip.EMPTY


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


def letter_count(words: list[str]) -> int:
    return sum(map(len, words))


def marks_of(page: str, extraction: Extraction = Extraction()) -> Marks:  # noqa: B008 - frozen
    made = fingerprint_page(Page(page.encode()), extraction)
    split = read_file(page.encode(), extraction)
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
    share = letter_count(hidden) / letter_count(words)
    expected = (Mark(MarkReason.HIDDEN, f"{100 * share:.0f} %"),) if share > 0.5 else ()
    menu = f"<nav style='display:none'>{' '.join(words)}</nav><script>{'x' * 9999}</script>"
    page = f"<html><head>{SHEET}</head><body>{menu}<article>{' '.join(parts)}</article>"
    assert marks_of(page, Extraction("article")) == expected, language


@pytest.mark.parametrize("language", SAMPLED)
def test_a_story_within_a_hidden_element_is_hidden(language: Language) -> None:
    text = STORIES[language][0]
    found = extract_story(
        Page(f"<div style='display:none'><article>{text}</article></div>".encode()), Extraction("article")
    )
    assert isinstance(found, PageStory)
    assert found.text.marks == (Mark(MarkReason.HIDDEN, "100 %"),)
    assert found.text.words == tokenize(extract_visible_text(text, Extraction())), (
        "a story that alone is hidden is not read"
    )


@pytest.mark.parametrize("language", SAMPLED)
def test_a_plain_page_has_no_mark(language: Language) -> None:
    for text in STORIES[language]:
        assert marks_of(f"{SHEET}<p style='color:red'>{text}</p>") == ()
        buttons = "".join(f"<button style='display:inline-block'>{word}</button> " for word in text.split())
        assert marks_of(f"<p>{buttons}</p>") == (), "the edges of inline blocks count as unseen letters"


@pytest.mark.parametrize(
    "disguise", [trick for trick in DISGUISES if trick.name in UNSEEN | FOLDED], ids=lambda disguise: str(disguise.name)
)
def test_letters_in_disguise_are_marked(disguise: Disguise) -> None:
    for language in disguise.languages:
        made = fingerprint_page(Page(disguise.page(STORIES[language][0], language).encode()), Extraction())
        assert isinstance(made, PageFingerprinted), made
        assert [mark.reason for mark in made.marks] == [MarkReason.LOOK_ALIKES], language


@pytest.mark.parametrize("language", SAMPLED)
def test_control_characters_are_marked(language: Language) -> None:
    text = STORIES[language][0]
    made = read_file("\x02".join(text).encode(), Extraction())
    assert isinstance(made, Text)
    assert made.marks == (Mark(MarkReason.CONTROLS, "50 %"),)
