"""The page of an export in a real browser: it fits any window, and its filters work by keyboard and without scripts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, Request, expect

from tests.support.command import Neardup
from tests.support.desk_browser import NARROW, WIDE, take_shot
from tests.support.exported_pairs import page as write
from tests.support.exported_pairs import pair
from tests.support.hostile_titles import TITLES

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def exported(samples: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "flags.html"
    done = samples("export", "-o", str(path))
    assert done.code == 0, done.err
    return path


@contextmanager
def opened(browser: Browser, path: Path, *, dark: bool = False, wide: bool = True) -> Iterator[Page]:
    """The opened page, with scripts enabled; fails at the end after a request, a dialog, or an error."""
    width, height = WIDE if wide else NARROW
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    problems: list[str] = []

    def on_dialog(dialog: Dialog) -> None:
        problems.append(dialog.message)
        dialog.dismiss()

    def on_request(request: Request) -> None:
        if request.url != path.as_uri():
            problems.append(request.url)

    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("dialog", on_dialog)
    page.on("request", on_request)
    try:
        page.goto(path.as_uri())
        yield page
        assert not problems, problems
    finally:
        context.close()


@pytest.mark.parametrize(("dark", "wide"), [(False, True), (True, False)])
def test_page_fits_any_window(browser: Browser, exported: Path, shots: Path, dark: bool, wide: bool) -> None:
    with opened(browser, exported, dark=dark, wide=wide) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("21 cases")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is wider than the window"
        assert page.evaluate(AUDIT) == []
        name = f"export-{'dark' if dark else 'light'}-{'wide' if wide else 'narrow'}"
        take_shot(page, shots, f"{name}", whole=True)


def test_filters_work_by_keyboard_without_a_script(browser: Browser, exported: Path) -> None:
    with opened(browser, exported) as page:
        shown = page.locator("article:visible")
        expect(shown).to_have_count(21)
        page.locator("#kind").focus()
        page.keyboard.press("ArrowRight")
        expect(shown).to_have_count(8)
        assert set(shown.locator(".kind b").first.all_inner_texts()) == {"Exact copy"}
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        expect(shown).to_have_count(1)
        expect(shown.locator(".words[lang=hi]").first).to_be_visible()
        page.get_by_label("partial").check()
        page.get_by_label("Bengali").check()
        expect(page.get_by_text("No case of this kind in this language.")).to_be_visible()
        page.get_by_label("all").first.check()
        expect(shown).to_have_count(1)
        expect(page.get_by_text("No case of this kind in this language.")).to_be_hidden()


def test_hostile_titles_stay_text(browser: Browser, tmp_path: Path, shots: Path) -> None:
    rows = [
        pair(flag_id=n, story_title=title, matched_title=title, story_author_id=title) for n, title in enumerate(TITLES)
    ]
    path = tmp_path / "attacks.html"
    write(path, rows)
    with opened(browser, path, wide=False) as page:
        expect(page.locator("article")).to_have_count(len(TITLES))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "a long word widens it"
        expect(page.locator("script, img, svg")).to_have_count(0)
        take_shot(page, shots, "export-attacks", whole=True)
