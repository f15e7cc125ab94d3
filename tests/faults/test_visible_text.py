"""Law: the words of a page are those that Chromium shows, whatever styles hide, show, break and join them.

Chromium's `innerText` is what is compared, without the texts that its computed styles and boxes make unreadable.  It
breaks no line at a block that is invisible, so the words at the edges of its visible children may be joined.

Law: the words of a grid are read in the order of the boxes that Chromium shows.
"""

import random
from collections import Counter
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


GRIDS = min(1000 * CHAOS, 5_000)
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris")
AREAS = "'a b c' 'd e f' 'g h i'"
TRACKS = (
    "3em 3em 3em",
    "repeat(2, 4em)",
    "[p] 3em [q] 3em [r s] 3em [t]",
    "repeat(3, [x] 3em)",
    "minmax(2em, 4em) 4em",
)
LINES = (
    "auto",
    "1",
    "2",
    "-1",
    "-2",
    "3",
    "span 2",
    "p",
    "q",
    "r",
    "t",
    "x 2",
    "calc(1 + 1)",
    "2 / 3",
    "1 / span 2",
    "a",
    "b-end",
)
SHOWN = """(pages) => pages.map((markup) => {
    document.body.innerHTML = markup;
    const boxes = [...document.querySelectorAll('i')].map(one => [one.textContent, one.getBoundingClientRect()]);
    return boxes.map(([word, box]) => [word, Math.round(box.top), Math.round(box.left)]);
})"""


def generated_grid(rng: random.Random) -> str:
    """A grid of words with chosen and named lines, areas, spans, order and flow."""

    def perhaps(share: float, *choices: str) -> str:
        return rng.choice(choices) + ";" if rng.random() < share else ""

    rows, columns = rng.choice(TRACKS), rng.choice(TRACKS)
    box = perhaps(
        0.7, f"grid-template-columns:{columns}", f"grid-template:{rows} / {columns}", f"grid:{rows} / {columns}"
    )
    box += perhaps(0.4, f"grid-template-rows:{rows}") + perhaps(0.4, f"grid-template-areas:{AREAS}")
    box += perhaps(
        0.5, "grid-auto-flow:column", "grid-auto-flow:dense", "grid-auto-flow:column dense", "grid: auto-flow / 3em 3em"
    )
    share = rng.choice((0.0, 0.3, 1.0))
    words = [
        f"<i style='{_lines(rng, share)}{perhaps(0.3, 'order:1', 'order:-1', 'order:calc(1 + 2)')}'>{word}</i>"
        for word in WORDS[: rng.randint(3, len(WORDS))]
    ]
    rng.shuffle(words)
    return f'<p style="display:grid;width:30em;{box}">{" ".join(words)}</p>'


def _lines(rng: random.Random, share: float) -> str:
    if rng.random() >= share:
        return ""
    row = rng.choice([line for line in LINES if "span" not in line])  # a row with nothing of its own has no height
    column = rng.choice(LINES)
    return rng.choice(
        (
            f"grid-row:{row};grid-column:{column};",
            f"grid-row:{row};",
            f"grid-column:{column};",
            f"grid-area:{rng.choice('abcdefghi')};",
        )
    )


def test_the_words_of_a_grid_are_read_as_a_browser_shows_them(browser: Browser) -> None:
    rng = random.Random(CHAOS)
    pages = [generated_grid(rng) for _ in range(GRIDS)]
    differ = list[tuple[str, str, list[str]]]()
    boxes_of_pages = browser.new_page().evaluate(SHOWN, pages)
    for markup, boxes in zip(pages, boxes_of_pages, strict=True):
        if max(Counter((top, left) for _, top, left in boxes).values()) > 1:
            continue  # which of two words over each other is read first does not matter
        shown = [word for word, _, _ in sorted(boxes, key=lambda box: box[1:])]
        if (read := "".join(extract_visible_text(markup, Extraction()).split())) != "".join(shown):
            differ.append((markup, read, shown))
    shortest = min(differ, key=lambda difference: len(difference[0]), default=None)
    assert not shortest, f"{len(differ)} grids differ: the page, its text, and what the browser shows: {shortest}"
