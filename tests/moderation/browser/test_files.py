"""The page of a pair and that of an export as files, in a real browser: passages link to each other with and without
the script, folds open, filters work by keyboard, stories stay inside their frames, the pages fit any window, and
nothing violates the policy of the page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from neardup.core.languages import SHIPPED
from neardup.core.verify.clusters import find_clusters
from neardup.moderation.evidence.page import lay_out, render_evidence
from neardup.query.compare import find_evidence
from neardup.records import Language
from playwright.sync_api import Browser, Page, expect

from tests.moderation.evidence.test_page import ATTACKS
from tests.support.command import Neardup
from tests.support.compared_stories import THRESHOLDS, story_of
from tests.support.desk_browser import NARROW, WIDE, take_shot
from tests.support.exported_pairs import TITLES, pair
from tests.support.exported_pairs import page as write
from tests.support.languages import CODES, ENGLISH, HINDI, MALAYALAM, SAMPLED, TAMIL
from tests.support.sample_texts import AROUND, STORIES

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
EDGES = [(1, 2, 0.81), (2, 3, 0.55), (1, 4, 1.0), (3, 5, 0.7)]
IN_VIEW = """(name) => {  // the start of a passage is visible in its story's frame and in the window
    const mark = document.getElementById(name), frame = mark.closest(".story").getBoundingClientRect();
    const at = mark.getClientRects()[0];
    return at.top >= Math.max(0, frame.top) && at.bottom <= Math.min(innerHeight, frame.bottom);
}"""


def written(folder: Path, language: Language, *, hostile: str = "") -> str:
    """Write a page of two stories whose passages are in different order, with edits and other text; returns its URL."""
    parts = [story.split() for story in STORIES[language][:3]]
    edited = [f"{word}ं" if n % 40 == 20 else word for n, word in enumerate(parts[0])]
    foreign = list(AROUND[language].stories[2])
    texts = [
        "\n\n".join(" ".join(words) for words in ([hostile], parts[0], foreign * 3, parts[1])),
        "\n\n".join(" ".join(words) for words in (parts[1], parts[2] * 3, edited, [hostile])),
    ]
    a, b = (
        story_of(
            text, id=n, language=str(language), title=f"{hostile} {' '.join(parts[n][:5])}", author_id=f"7{hostile}"
        )
        for n, text in enumerate(texts, 1)
    )
    [cluster] = find_clusters(EDGES, {})
    page = render_evidence(
        find_evidence(a, b, THRESHOLDS),
        a,
        b,
        lay_out(cluster, EDGES, (1, 2), {3: {"name": hostile, "title": hostile}}),
        SHIPPED,
    )
    (folder / "pair.html").write_text(page, encoding="utf-8")
    return (folder / "pair.html").as_uri()


@contextmanager
def opened(browser: Browser, address: str, window: tuple[int, int] = WIDE, **options: Any) -> Iterator[Page]:
    """The opened page; fails at the end if the browser reported an error, a dialog, or a request."""
    context = browser.new_context(viewport={"width": window[0], "height": window[1]}, **options)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))  # left open, so that the test fails
    page.on("request", lambda request: problems.append(request.url) if not request.is_navigation_request() else None)
    try:
        page.goto(address)
        yield page
        assert problems == []
    finally:
        context.close()


def wait_until_in_view(page: Page, name: str) -> None:
    page.wait_for_function(IN_VIEW, arg=name)


def last_passage(page: Page) -> int:
    """The number of the last passage in A, which is the first in B."""
    return page.locator('[data-side="a"] .jump').count()


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_passage_links_to_its_other_side(browser: Browser, tmp_path: Path, script: bool) -> None:
    address = written(tmp_path, ENGLISH)
    with opened(browser, address, java_script_enabled=script) as page:
        page.locator("#b1 .jump").click()
        if script:
            wait_until_in_view(page, "a1")
            page.locator("mark.flash").first.wait_for()
            page.wait_for_function("() => !document.querySelector('mark.flash')")
        else:
            assert page.url.endswith("#a1")
        n = last_passage(page)
        page.locator(f"#a{n} .jump").click()
        if script:
            wait_until_in_view(page, f"b{n}")
            wait_until_in_view(page, f"a{n}")
        else:
            assert page.url.endswith(f"#b{n}")


def test_click_on_a_passage_scrolls_to_its_other_side(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, HINDI)) as page:
        n = last_passage(page)
        assert not page.evaluate(IN_VIEW, f"a{n}")
        page.locator(f'[data-side="b"] mark[data-passage="{n}"]').last.click(position={"x": 20, "y": 8})
        wait_until_in_view(page, f"a{n}")


def test_keys_step_through_passages_and_open_folds(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, written(tmp_path, TAMIL), reduced_motion="reduce") as page:
        for name in ("1", "2", "3"):
            page.keyboard.press("n")
            wait_until_in_view(page, f"a{name}")
            wait_until_in_view(page, f"b{name}")
            assert page.evaluate("document.activeElement.closest('mark').id") == f"a{name}"
        page.keyboard.press("p")
        wait_until_in_view(page, "b2")
        folds = page.locator(".story details.fold")
        assert folds.count() >= 2
        assert page.locator(".story details[open]").count() == 0
        page.keyboard.press("f")
        assert page.locator(".story details[open]").count() == folds.count()
        page.get_by_role("button", name="Fold or unfold all").click()
        assert page.locator(".story details[open]").count() == 0
        folds.first.locator("summary").click()
        assert page.locator(".story details[open]").count() == 1


@pytest.mark.parametrize(("language", "scheme"), list(zip(SAMPLED, cycle(("light", "dark")), strict=False)))
def test_each_language_in_light_or_dark_scheme(
    browser: Browser, tmp_path: Path, shots: Path, language: Language, scheme: str
) -> None:
    with opened(browser, written(tmp_path, language), color_scheme=scheme) as page:
        frame = page.locator('[data-side="a"] .story')
        assert frame.get_attribute("lang") == CODES[language]
        height = page.evaluate("(e) => parseFloat(getComputedStyle(e).lineHeight) / 17", frame.element_handle())
        assert height >= (1.6 if language is ENGLISH else 1.7)
        assert page.evaluate("document.documentElement.scrollHeight - document.body.clientHeight") < 2, (
            "empty space below"
        )
        take_shot(page, shots, f"evidence-{language.lower()}-{scheme}")


@pytest.mark.parametrize("window", [WIDE, NARROW], ids=["wide", "narrow"])
def test_hostile_text_stays_inside_the_page(
    browser: Browser, tmp_path: Path, shots: Path, window: tuple[int, int]
) -> None:
    address = written(tmp_path, HINDI, hostile=" ".join(ATTACKS))
    with opened(browser, address, window) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= window[0]
        take_shot(page, shots, f"evidence-attacked-{window[0]}", whole=window == WIDE)
        assert page.locator("main").count() == 1
        heights = page.evaluate("[...document.querySelectorAll('.side header')].map((one) => one.clientHeight)")
        assert max(heights) < 400, "a title or a name takes the space of the story"


def test_narrow_screen_shows_passages_in_pairs(browser: Browser, tmp_path: Path, shots: Path) -> None:
    address = written(tmp_path, MALAYALAM)
    with opened(browser, address, NARROW, is_mobile=True, has_touch=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
        first = page.locator(".pair").first
        a, b = (first.locator("dd").nth(n).bounding_box() for n in (0, 1))
        assert a is not None and b is not None
        assert a["y"] + a["height"] <= b["y"], "A's words are not above B's"
        take_shot(page, shots, "evidence-narrow", whole=True)
        first.locator("dt a").first.click()
        wait_until_in_view(page, "a1")
    with opened(browser, address, WIDE) as page:
        assert not page.locator(".pair").first.is_visible()


@pytest.fixture(scope="module")
def exported(samples: Neardup, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("exported") / "flags.html"
    done = samples("export", "-o", str(path))
    assert done.code == 0, done.err
    return path.as_uri()


@pytest.mark.parametrize(("window", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_export_fits_any_window(
    browser: Browser, exported: str, shots: Path, window: tuple[int, int], scheme: str
) -> None:
    with opened(browser, exported, window, color_scheme=scheme) as page:
        expect(page.get_by_role("heading", level=1)).to_have_text("21 cases")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is wider than the window"
        assert page.evaluate(AUDIT) == []
        take_shot(page, shots, f"export-{scheme}-{window[0]}", whole=True)


def test_filters_work_by_keyboard_without_a_script(browser: Browser, exported: str) -> None:
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
    with opened(browser, path.as_uri(), NARROW) as page:
        expect(page.locator("article")).to_have_count(len(TITLES))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "a long word widens it"
        expect(page.locator("script, img, svg")).to_have_count(0)
        take_shot(page, shots, "export-attacks", whole=True)
