"""The printed pages keep the marks of what was copied, on paper without backgrounds, and cut no text and no item."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.moderation.desk.test_evidence_file import opened, written
from tests.support.command import Neardup
from tests.support.languages import TAMIL

PAPER = 780, 1100
UNDERLINE = (
    "(mark) => [getComputedStyle(mark).textDecorationLine, getComputedStyle(mark).textDecorationStyle].join(' ')"
)
CUT = """() => [...document.querySelectorAll('dd, .story, h3, .side h2 bdi')].filter(
    (box) => getComputedStyle(box).overflowY !== 'visible' && box.scrollHeight > box.clientHeight + 1).length"""


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
