"""Every page keeps to the rules of accessibility, as axe-core tests them, on a desktop, on a phone and in the dark; and
on a phone no page grows out of hand: a story of 10,000 words stays within 8,000 pixels, with the verdict in reach.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from neardup.ledger import connect
from playwright.sync_api import Browser, expect

from tests.moderation.desk.conftest import filled
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import NARROW, WIDE, Desk, serving, signed_in
from tests.support.desk_corpus import prose, write
from tests.support.languages import HINDI

LONG, SOURCES, WORDS, PASSAGE = 5_100, 30, 10_000, 40
MOST_PIXELS = 8_000
DECIDED = "long case", "long pair", "pair of two whole stories"
PAGES = {
    "queue": "/",
    "pairs": "/pairs?status=every",
    "long case": f"/case/{LONG}?at=0",
    "long story": f"/story/{LONG}",
    "long pair": f"/pair/{LONG - SOURCES}/{LONG}",
    "pair of two whole stories": f"/pair/{LONG - SOURCES + 1}/{LONG}",
    "author": "/author/copier",
    "authors": "/authors",
    "statistics": "/statistics",
    "search": "/search?q=लंबी",
    "name": "/name",
    "no such story": "/story/999",
}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger with a story of WORDS words, half of which stand in SOURCES sources, the first of them as long."""
    folder = tmp_path_factory.mktemp("long")
    neardup = filled(folder, write(folder / "corpus", [(1, "अकेली", f"<p>{prose(1)}</p>")]))
    story = prose(LONG, WORDS).split()
    texts = [prose(LONG + 1, WORDS).split(), *(prose(LONG + n, 400).split() for n in range(2, SOURCES + 1))]
    copied: list[list[tuple[int, int, int]]] = [[] for _ in texts]
    for n, at in enumerate(range(0, WORDS - PASSAGE, 2 * PASSAGE)):
        nth = n // 2 % SOURCES if n % 2 else 0
        start = at if nth == 0 else len(copied[nth]) * PASSAGE
        story[at : at + PASSAGE] = texts[nth][start : start + PASSAGE]
        copied[nth].append((at, start, PASSAGE))
    sources = [CopiedFrom(text, spans, title="स्रोत") for text, spans in zip(texts, copied, strict=True)]
    with closing(connect(neardup.ledger)) as db:
        write_copying_story(folder / "corpus" / "pages", db, LONG, HINDI, story, sources, title="लंबी कहानी")
    return neardup


@pytest.fixture(scope="module")
def desk(long: Neardup) -> Iterator[Desk]:
    with serving(long) as open_desk:
        yield open_desk


@pytest.mark.parametrize(("window", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_no_page_breaks_a_rule_of_accessibility(
    browser: Browser, desk: Desk, shots: Path, window: tuple[int, int], scheme: str
) -> None:
    found = {}
    with signed_in(browser, desk, shots, window=window, color_scheme=scheme) as asha:
        for name, path in PAGES.items():
            page = asha.go(path)
            result = Axe().run(page)
            if result.violations_count:
                found[name] = result.generate_report()
        asha.expect_status(404)
    assert not found, "\n".join(f"{name}: {report}" for name, report in found.items())


def test_no_page_is_too_long_for_a_phone(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, window=NARROW, has_touch=True) as asha:
        heights = {}
        for name, path in PAGES.items():
            page = asha.go(path)
            assert asha.fits(), f"{name} is wider than the window"
            heights[name] = page.evaluate("document.documentElement.scrollHeight")
        asha.expect_status(404)
    assert max(heights.values()) <= MOST_PIXELS, heights


@pytest.mark.parametrize("code", ["hi", "ur"])
def test_every_language_of_the_desk_fits_a_phone(browser: Browser, desk: Desk, shots: Path, code: str) -> None:
    with signed_in(browser, desk, shots, window=NARROW, has_touch=True) as asha:
        asha.go(f"/language/{code}")
        for name, path in PAGES.items():
            page = asha.go(path)
            assert asha.fits(), f"{name} is wider than the window"
            result = Axe().run(page)
            assert not result.violations_count, f"{name}: {result.generate_report()}"
            asha.shot(f"{name}-{code}", whole=False)
        asha.expect_status(404)


def test_verdict_is_in_reach_all_along_a_page(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, window=NARROW, has_touch=True) as asha:
        for name in DECIDED:
            page = asha.go(PAGES[name])
            for part in (0, 0.3, 0.6, 1):
                page.evaluate("(part) => scrollTo(0, part * document.documentElement.scrollHeight)", part)
                expect(page.get_by_role("button", name="Plagiarism")).to_be_in_viewport()
            bar = page.locator(".verdicts").bounding_box()
            assert bar and bar["height"] < NARROW[1] / 8, f"the bar of {name} hides the page"


def test_passages_beyond_ten_open_without_scripts(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, window=NARROW, java_script_enabled=False) as asha:
        page = asha.go(PAGES["long pair"])
        expect(page.locator(".paired .pair").nth(9)).to_be_visible()
        expect(page.locator(".paired .pair").nth(10)).to_be_hidden()
        page.get_by_text("more passages").click()
        expect(page.locator(".paired .pair").nth(10)).to_be_visible()
        page = asha.go(PAGES["long story"])
        expect(page.locator(".sources li").nth(10)).to_be_hidden()
        page.get_by_text("more sources").click()
        expect(page.locator(".sources li").nth(10)).to_be_visible()
