"""Laws of pages at hand: they read as pages of the store do, in every language; a hostile one harms no other page."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from neardup.config import Content
from neardup.core.languages import LANGUAGES
from neardup.core.page import Page, PageStory, Unreadable, extract_story
from neardup.core.text.extraction import Extraction
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.pages import watchdog
from neardup.pages.reader_pool import ReaderPool
from neardup.records import Limit, Mark, MarkReason, Skip

from tests.support.languages import TEXTS

STORY = Extraction("article")
HOSTILE = b"<p>" + b"".join(b"<b %d>" % n for n in range(1777)) + b"<p>x" * 16_000


def page_of(text: str) -> bytes:
    return f"<html><nav>menu</nav><article><p>{text}</p></article></html>".encode()


async def test_a_page_at_hand_reads_as_one_of_the_store(tmp_path: Path) -> None:
    async with aclosing(ReaderPool(Content(url=f"file:{tmp_path}"), STORY, 8)) as pool:
        for language in LANGUAGES:
            body = page_of(f"{TEXTS[language]} {TEXTS[language]}")
            story = extract_story(Page(body), STORY)
            found = await pool.prepare(body)
            assert isinstance(story, PageStory) and isinstance(found, Text)
            assert (found.written, found.fingerprint) == (story.text.written, story.text.fingerprint), language
        assert await pool.prepare(b"<p>no article") == Unreadable(Skip.NO_BODY)
        assert await pool.prepare(b"") == Unreadable(Skip.EMPTY)


async def test_a_hostile_page_is_read_without_its_markup_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "MOST_MEMORY_BYTES", 50_000_000)
    async with aclosing(ReaderPool(Content(url=f"file:{tmp_path}"), Extraction(), 8)) as pool:
        await pool.start()
        pages = [page_of(2 * f"{TEXTS[language]} ") for language in LANGUAGES]
        hostile, *others = await asyncio.gather(*map(pool.prepare, [HOSTILE + pages[0], *pages]))
    assert isinstance(hostile, Text)
    assert hostile.marks == (Mark(MarkReason.TRUNCATED, Limit.BUDGET),)
    words = tokenize(2 * f"{TEXTS[LANGUAGES[0]]} ")
    assert hostile.words[-len(words) :] == words, "the story behind the bomb was not read"
    for other in others:
        assert isinstance(other, Text)
        assert MarkReason.TRUNCATED not in {mark.reason for mark in other.marks}
