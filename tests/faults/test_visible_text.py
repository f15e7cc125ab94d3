"""Law: the words of a page are those that Chromium shows, whatever styles hide, show, break and join them.

Chromium's `innerText` is what is compared, without the texts that its computed styles and boxes make unreadable.  It
breaks no line at a block that is invisible, so the words at the edges of its visible children may be joined.
"""

import random
from collections.abc import Iterator, Sequence

import pytest
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.text.normalize import tokenize
from playwright.sync_api import Browser

from tests.support.desk_browser import chromium
from tests.support.random_pages import SHEET, STORY, in_template
from tests.support.rendered_pages import (
    UNPADDED,
    generated_page,
    generated_rules,
    generated_story,
    page_of_boxes,
    shown_by,
)
from tests.support.sampling import CHAOS

PAGES = 1_000 if CHAOS == 1 else min(2_000 * CHAOS, 20_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


def test_the_words_of_a_page_are_those_that_a_browser_shows(browser: Browser) -> None:
    rng = random.Random(CHAOS)
    _assert_read_as_shown(browser, [generated_page(rng) for _ in range(PAGES)], Extraction())


def test_the_words_of_a_story_are_those_that_a_browser_shows_within_the_page_of_a_site(browser: Browser) -> None:
    rng = random.Random(CHAOS)
    _assert_read_as_shown(browser, [_page_of_site(rng) for _ in range(PAGES // 4)], STORY)


def test_words_in_boxes_of_their_own_are_apart_as_a_browser_shows_them(browser: Browser) -> None:
    rng = random.Random(CHAOS)
    _assert_read_as_shown(browser, [page_of_boxes(rng) for _ in range(PAGES // 4)], Extraction())


def _page_of_site(rng: random.Random) -> str:
    """A generated story in the page of a site, whose rules act on any of its elements in half of the pages."""
    rules = generated_rules(rng) if rng.random() < 0.5 else ""
    return in_template(UNPADDED + generated_story(rng), SHEET + rules)


def _assert_read_as_shown(browser: Browser, pages: Sequence[str], extraction: Extraction) -> None:
    shown = shown_by(browser, pages, extraction.body or "html")
    differ = [
        (page, read, seen)
        for page, seen in zip(pages, shown, strict=True)
        if _differ(page, tokenize(read := extract_visible_text(page, extraction)), tokenize(seen))
    ]
    shortest = min(differ, key=lambda difference: len(difference[0]), default=None)
    assert not shortest, f"{len(differ)} pages differ: the page, its text, and what the browser shows: {shortest}"


def _differ(page: str, read: list[bytes], seen: list[bytes]) -> bool:
    is_joined = "visibility" in page.lower() and b"".join(read) == b"".join(seen)
    return read != seen and not is_joined
