"""The desk is usable with a keyboard and a screen reader: every control is reachable by Tab, shows the focus and has a
name; headings and landmarks are in order.  The rules are those of WCAG 2.2 that a script can check.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.desk_browser import NARROW, WIDE, Desk, Moderator, signed_in
from tests.support.sampling import crossed

PAGES = (
    "/",
    "/?status=every&story=4104002",
    "/pair/4100001/4100007?at=11",
    "/case/4104002",
    "/story/4100007?at=0",
    "/name",
    "/nowhere",
)
WINDOWS = (WIDE, NARROW)
SHOWN = sorted(crossed(WINDOWS, PAGES), key=lambda shown: shown[0], reverse=True)  # so that each window opens once
CONTROLS = "a[href], button, input:not([type=hidden]), textarea, select, summary, [tabindex='0']"

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {
    html: one.outerHTML.slice(0, 150),
    n: [...document.querySelectorAll(`CONTROLS`)].indexOf(one),
    shown: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}""".replace("CONTROLS", CONTROLS)


@pytest.fixture(scope="module", params=WINDOWS, ids=["wide", "narrow"])
def asha(browser: Browser, desk: Desk, shots: Path, request: pytest.FixtureRequest) -> Iterator[Moderator]:
    with signed_in(browser, desk, shots, window=request.param) as moderator:
        yield moderator


@pytest.mark.parametrize(("asha", "path"), SHOWN, indirect=["asha"])
def test_page_passes_the_audit_and_every_control_is_reachable_by_tab(asha: Moderator, path: str) -> None:
    page = asha.go(path)
    assert page.evaluate(AUDIT) == []
    page.evaluate("document.activeElement.blur()")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    controls = page.evaluate(
        f"""() => [...document.querySelectorAll(`{CONTROLS}`)].flatMap((one, n) => one.checkVisibility() ? [n] : [])"""
    )
    reached = set[int]()
    for _ in range(2 * len(controls) + 2):
        if reached >= set(controls):
            break
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            continue
        assert focused["shown"], f"the focus is invisible on {focused['html']}"
        assert focused["inside"], f"the focus is outside the window on {focused['html']}"
        reached.add(focused["n"])
    unreached = set(controls) - reached
    html = page.evaluate(
        f"unreached => unreached.map(n => document.querySelectorAll(`{CONTROLS}`)[n].outerHTML.slice(0, 120))",
        sorted(unreached),
    )
    assert not unreached, f"not reached by Tab: {html}"
    asha.expect_status(404)


def test_first_tab_skips_to_the_content(asha: Moderator) -> None:
    page = asha.go("/pair/4100001/4100007")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_reduced_motion_is_respected(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, reduced_motion="reduce") as asha:
        page = asha.go("/pair/4100001/4100007")
        moving = "one => parseFloat(getComputedStyle(one).transitionDuration) > 0"
        assert not page.evaluate(f"[...document.querySelectorAll('*')].some({moving})")
