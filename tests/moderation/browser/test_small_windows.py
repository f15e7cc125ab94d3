"""Every page keeps to the rules of accessibility, as axe-core tests them, on a desktop, on a phone and in the dark; and
on a phone no page grows out of hand: a story of 10,000 words stays within 8,000 pixels, with the verdict in reach.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from neardup.ledger import connect
from playwright.sync_api import Browser, expect

from tests.moderation.browser.conftest import configured
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
    "case": "/case/4104002?at=0",
    "story": "/story/4100007",
    "pair": "/pair/4104002/4104005",
    "author": "/author/7020",
    "authors": "/authors",
    "statistics": "/statistics",
    "search": "/search?q=की",
    "name": "/name",
    "no such story": "/story/999",
}
LONG_PAGES = {
    "long case": f"/case/{LONG}?at=0",
    "long story": f"/story/{LONG}",
    "long pair": f"/pair/{LONG - SOURCES}/{LONG}",
    "pair of two whole stories": f"/pair/{LONG - SOURCES + 1}/{LONG}",
    "author of a long story": "/author/copier",
    "search for a long story": "/search?q=लंबी",
}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger with a story of WORDS words, half of which stand in SOURCES sources, the first of them as long."""
    folder = tmp_path_factory.mktemp("long")
    neardup = configured(folder, write(folder / "corpus", []))
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
def long_desk(long: Neardup) -> Iterator[Desk]:
    with serving(long) as open_desk:
        yield open_desk


@pytest.fixture(scope="module")
def files(samples: Neardup, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A case file and the pages of both exports."""
    folder = tmp_path_factory.mktemp("files")
    commands = {
        "case.html": ["case", "4104005", "--html"],
        "flags.html": ["export"],
        "stories.html": ["export", "--by", "story"],
    }
    for name, command in commands.items():
        ended = samples(*command, "-o", str(folder / name))
        assert ended.code == 0, ended.err
    return [folder / name for name in commands]


def audited(
    browser: Browser, desk: Desk, shots: Path | None, pages: Mapping[str, str], code: str = "en", **options: Any
) -> dict[str, int]:
    """The height of each page in pixels; fails where a page is wider than its window or axe-core finds a violation."""
    found, heights = {}, {}
    with signed_in(browser, desk, shots, **options) as asha:
        asha.go(f"/language/{code}")
        for name, path in pages.items():
            page = asha.go(path)
            assert asha.fits(), f"{name} is wider than the window"
            assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("system-ui"), "no style sheet"
            heights[name] = page.evaluate("document.documentElement.scrollHeight")
            result = Axe().run(page)
            if result.violations_count:
                found[name] = result.generate_report()
            asha.shot(f"{name}-{code}", whole=False)
        asha.expect_status(404)
    assert not found, "\n".join(f"{name}: {report}" for name, report in found.items())
    return heights


@pytest.mark.parametrize(
    "options",
    [
        {"code": "en", "window": WIDE, "color_scheme": "light"},
        {"code": "hi", "window": NARROW, "color_scheme": "dark", "has_touch": True},
        {"code": "ur", "window": NARROW, "color_scheme": "light", "has_touch": True},
    ],
    ids=["wide", "narrow, dark, Hindi"],
)
def test_no_page_breaks_a_rule_of_accessibility(
    browser: Browser, desk: Desk, shots: Path | None, options: dict[str, Any]
) -> None:
    audited(browser, desk, shots, PAGES, **options)


def test_no_page_of_long_stories_breaks_a_rule_of_accessibility(
    browser: Browser, long_desk: Desk, shots: Path | None
) -> None:
    audited(browser, long_desk, shots, LONG_PAGES, window=WIDE, color_scheme="dark")


def test_no_page_of_long_stories_breaks_a_rule_or_is_too_long_on_a_phone(
    browser: Browser, long_desk: Desk, shots: Path | None
) -> None:
    heights = audited(browser, long_desk, shots, LONG_PAGES, window=NARROW, has_touch=True)
    assert max(heights.values()) <= MOST_PIXELS, heights


@pytest.mark.parametrize(("window", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow"])
def test_files_break_no_rule_of_accessibility(
    browser: Browser, files: list[Path], window: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": window[0], "height": window[1]}, color_scheme=scheme)
    for path in files:
        page.goto(path.as_uri())
        result = Axe().run(page)
        assert not result.violations_count, f"{path.name}: {result.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= window[0], f"{path.name} is too wide"
    page.close()


def test_verdict_is_in_reach_all_along_a_page(browser: Browser, long_desk: Desk, shots: Path | None) -> None:
    with signed_in(browser, long_desk, shots, window=NARROW, has_touch=True) as asha:
        for name in DECIDED:
            page = asha.go(LONG_PAGES[name])
            for part in (0, 0.3, 0.6, 1):
                page.evaluate("(part) => scrollTo(0, part * document.documentElement.scrollHeight)", part)
                expect(page.get_by_role("button", name="Plagiarism")).to_be_in_viewport()
            bar = page.locator(".verdicts").bounding_box()
            assert bar and bar["height"] < NARROW[1] / 8, f"the bar of {name} hides the page"


def test_passages_beyond_ten_open_without_scripts(browser: Browser, long_desk: Desk, shots: Path | None) -> None:
    with signed_in(browser, long_desk, shots, window=NARROW, java_script_enabled=False) as asha:
        page = asha.go(LONG_PAGES["long pair"])
        expect(page.locator(".paired .pair").nth(9)).to_be_visible()
        expect(page.locator(".paired .pair").nth(10)).to_be_hidden()
        page.get_by_text("more passages").click()
        expect(page.locator(".paired .pair").nth(10)).to_be_visible()
        page = asha.go(LONG_PAGES["long story"])
        expect(page.locator(".sources li").nth(10)).to_be_hidden()
        page.get_by_text("more sources").click()
        expect(page.locator(".sources li").nth(10)).to_be_visible()
