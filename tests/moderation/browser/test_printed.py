"""The printed pages keep the marks of what was copied, on paper without backgrounds, and cut no text and no item."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.moderation.browser.test_files import opened, written
from tests.support.command import Neardup
from tests.support.desk_browser import Desk, Moderator, signed_in
from tests.support.languages import TAMIL

PAPER = 717, 1046  # A4 with the margins of Chromium, in CSS pixels
CONTROLS = "input:visible, textarea:visible, button:visible, select:visible, nav:visible"
SIDE_BY_SIDE = """(list) => {
    const [a, b] = [...list.querySelectorAll('dd')].map((side) => side.getBoundingClientRect());
    return a.top === b.top && a.right <= b.left;
}"""
UNDERLINE = (
    "(mark) => [getComputedStyle(mark).textDecorationLine, getComputedStyle(mark).textDecorationStyle].join(' ')"
)
CUT = """() => [...document.querySelectorAll('dd, .story, h3, .side h2 bdi')].filter(
    (box) => getComputedStyle(box).overflowY !== 'visible' && box.scrollHeight > box.clientHeight + 1).length"""


@pytest.fixture(scope="module")
def printed(browser: Browser, desk: Desk, shots: Path) -> Iterator[Moderator]:
    """A moderator's window that shows each page as it is printed."""
    with signed_in(browser, desk, shots, window=PAPER) as moderator:
        as_printed(moderator.page)
        yield moderator


@pytest.mark.parametrize(
    ("path", "marks"),
    [
        ("/story/4104005", {"underline solid"}),
        ("/case/4104005", {"underline solid"}),
        ("/pair/4104002/4104005", {"underline solid"}),
        ("/case/4104002", {"underline solid"}),
        *((path, set()) for path in ("/", "/statistics", "/authors", "/author/7022")),
    ],
)
def test_paper_has_no_controls_and_every_mark_is_a_line(printed: Moderator, path: str, marks: set[str]) -> None:
    page = printed.go(path)
    controls = page.locator(CONTROLS).evaluate_all("(all) => all.map((one) => one.outerHTML.slice(0, 100))")
    assert controls == [], f"{path} prints what only a screen can use"
    assert set(page.locator("main mark").evaluate_all(f"(all) => all.map({UNDERLINE})")) == marks, path
    assert printed.fits(), f"{path} is wider than the paper"


def test_printed_pair_has_two_columns(printed: Moderator) -> None:
    page = printed.go("/pair/4104002/4104005")
    assert page.locator(".pair dl").evaluate_all(f"(all) => all.every({SIDE_BY_SIDE})")
    a, b = (page.locator(f"[data-side={side}]").bounding_box() for side in "ab")
    assert a and b and a["y"] == b["y"] and a["x"] + a["width"] <= b["x"], "the stories are not side by side"


def as_printed(page: Page) -> None:
    page.emulate_media(media="print")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_printed_pair_keeps_its_marks(browser: Browser, tmp_path: Path, scheme: str) -> None:
    with opened(browser, written(tmp_path, TAMIL), PAPER, color_scheme=scheme) as page:
        as_printed(page)
        for selector, style in (("mark", "solid"), ("del", "dotted"), ("ins", "double")):
            shown = page.locator(f".story {selector}").first
            if shown.count():
                assert shown.evaluate(UNDERLINE) == f"underline {style}", selector
                assert shown.evaluate("(mark) => getComputedStyle(mark).printColorAdjust") == "exact", selector
        expect(page.locator(".legend mark")).to_be_visible()
        expect(page.locator(".tools button:visible")).to_have_count(0)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert min(map(int, background[4:-1].split(","))) > 200, "a dark scheme is printed dark"
        assert page.evaluate(CUT) == 0, "a text is cut at the end of its frame"
        items = page.locator(".cluster ol > li, .pair")
        assert set(items.evaluate_all("(all) => all.map((one) => getComputedStyle(one).breakInside)")) == {"avoid"}


def test_printed_export_keeps_its_marks(browser: Browser, samples: Neardup, tmp_path: Path) -> None:
    path = tmp_path / "flags.html"
    assert samples("export", "-o", str(path)).code == 0
    with opened(browser, path.as_uri(), PAPER) as page:
        as_printed(page)
        assert set(page.locator("article mark").evaluate_all(f"(all) => all.map({UNDERLINE})")) == {"underline solid"}
        expect(page.locator(".legend")).to_be_visible()
        assert page.evaluate(CUT) == 0, "a text is cut at the end of its frame"
