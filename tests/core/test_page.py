"""Laws: page work needs nothing of the world, and its halves make the whole."""

import subprocess
import sys
import unicodedata
from dataclasses import astuple, replace

import numpy as np
import pytest
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.page import (
    MIN_WORDS,
    Page,
    PageFingerprinted,
    PageShingled,
    PageText,
    PreparedStory,
    Unreadable,
    fingerprint_page,
    prepare_file,
    shingle_story,
    split_file,
    split_story,
    text_marks,
    text_of,
)
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import opening
from neardup.core.text.normalize import tokens
from neardup.core.text.scripts import characters
from neardup.core.verify.shingled import fingerprinted
from neardup.languages import LANGUAGES, SHIPPED
from neardup.records import Language, Limit, Mark, MarkReason, Skip

from tests.support.languages import TEXTS

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
    words, marks = tokens(text), text_marks(text, characters(text))
    visible = sum(map(len, text.split()))
    signs = sum("VOWEL SIGN" in unicodedata.name(c, "") or "VIRAMA" in unicodedata.name(c, "") for c in text)
    made = fingerprint_page(page, WHOLE)
    assert isinstance(made, PageFingerprinted) and made.measures is not None
    assert made.measures == pytest.approx((len(words) / visible, signs / visible, 0, 0), rel=0.1)
    assert replace(made, measures=None) == PageFingerprinted(
        fingerprint(words), '"e"', len(page.body), None, opening(text), SHIPPED[language].script.upper(), marks
    )
    shingled = shingle_story(text)
    assert isinstance(shingled, PageShingled)
    assert shingled.text_hash == fingerprint(words).text_hash
    assert split_file(text.encode(), WHOLE) == split_story(text) == PageText(text, words, marks)
    prepared, compared = prepare_file(text.encode(), WHOLE), fingerprinted(words)[1]
    assert isinstance(prepared, PreparedStory)
    assert (prepared.text, prepared.fingerprint, prepared.marks) == (text, fingerprint(words), marks)
    same = map(np.array_equal, astuple(prepared.shingled), astuple(compared))
    assert all(same), "a check compares other words than a run"


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"", Skip.EMPTY), (b"<p></p>", Skip.EMPTY), (b"\x89PNG" + bytes(1000), Skip.NOT_TEXT)],
)
def test_a_page_without_text_gives_its_reason(body: bytes, reason: Skip) -> None:
    assert fingerprint_page(Page(body), WHOLE) == Unreadable(reason)


def test_a_page_without_the_body_gives_its_reason() -> None:
    assert text_of(Page(b"<p>some words</p>"), Extraction(".story")) == Unreadable(Skip.NO_BODY)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_that_the_parser_fails_on_is_compared_by_its_text(
    language: Language, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Page(f"<p style='color: red'>{2 * TEXTS[language]}</p>".encode(), "text/html; charset=utf-8")
    read = fingerprint_page(page, WHOLE)
    for parse in ("parsed", "briefly_parsed"):
        monkeypatch.setattr(f"neardup.core.text.html.{parse}", lambda _: 1 // 0)
    made, checked = fingerprint_page(page, WHOLE), prepare_file(page.body, WHOLE)
    assert isinstance(read, PageFingerprinted) and isinstance(made, PageFingerprinted), "the copy is hidden"
    assert isinstance(checked, PreparedStory), "the copy is hidden from a check"
    assert made.fingerprint == read.fingerprint == checked.fingerprint
    assert made.marks == checked.marks == (Mark(MarkReason.TRUNCATED, Limit.ERROR), *read.marks)
    assert capsys.readouterr().err.count("ZeroDivisionError") == 2, "the error is not in the log"


def test_a_page_is_not_blamed_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def parsed(_: object) -> None:
        raise MemoryError

    for parse in ("parsed", "briefly_parsed"):
        monkeypatch.setattr(f"neardup.core.text.html.{parse}", parsed)
    with pytest.raises(MemoryError):
        fingerprint_page(Page(b"<p>some words</p>"), WHOLE)


@pytest.mark.parametrize("words", [1, MIN_WORDS - 1, MIN_WORDS])
def test_few_words_are_compared_but_not_fingerprinted(words: int) -> None:
    text = " ".join(f"w{n}" for n in range(words))
    made, split = fingerprint_page(Page(text.encode()), WHOLE), split_story(text)
    assert isinstance(shingle_story(text), PageShingled)
    if words < MIN_WORDS:
        assert made == split == Unreadable(Skip.TOO_SHORT)
    else:
        assert isinstance(made, PageFingerprinted) and isinstance(split, PageText)
