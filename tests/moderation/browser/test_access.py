"""The desk is usable with a keyboard and a screen reader, and in a small window.

Every control is reachable by Tab, shows the focus and has a name; headings and landmarks are in order.  The rules are
those of WCAG 2.2 that a script can check, and those of axe-core, on a phone, a tablet and a desktop, and in the dark.
On a phone no page grows out of hand: a story of 10,000 words stays within 8,000 pixels, with the verdict in reach.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest
from neardup.core.verify.tiers import TRANSLATED
from neardup.ledger import connect, meaning_flags
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from playwright.sync_api import Browser, expect

from tests.moderation.browser.conftest import configured
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import NARROW, WIDE, Desk, Moderator, find_violations, serving, signed_in, take_shot
from tests.support.desk_client import prose, write
from tests.support.languages import HINDI
from tests.support.sampling import crossed
from tests.support.verdicts import put_complaint

AUDITED = (
    "/",
    "/?status=every&story=4104002",
    "/pair/4100001/4100007?at=11",
    "/case/4104002",
    "/story/4100007?at=0",
    "/name",
    "/nowhere",
)
WINDOWS = (WIDE, NARROW)
SHOWN = sorted(crossed(WINDOWS, AUDITED), key=lambda shown: shown[0], reverse=True)  # so that each window opens once
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
LONG, SOURCES, WORDS, PASSAGE = 5_100, 30, 10_000, 40
MOST_PIXELS = 8_000
HEIGHTS = {360: 760, 768: 1024, 1280: 900}  # of windows, by their widths
# The elements whose text has at least five lines with fewer than three characters a line.
SQUEEZED = """() => [...document.querySelectorAll("main *, header *")].flatMap((element) => {
  if (!element.checkVisibility() || element.matches(".unseen")) return [];
  const texts = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
  return texts.flatMap((text) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    return lines >= 5 && text.data.trim().length < 3 * lines ? [text.data.trim()] : [];
  });
})"""
DECIDED = "long case", "long pair", "pair of two whole stories"
PAGES = {
    "queue": "/",
    "case": "/case/4104002?at=0",
    "story": "/story/4100007",
    "pair": "/pair/4104002/4104005",
    "author": "/author/7020",
    "authors": "/authors",
    "decisions": "/decisions",
    "complaints": "/complaints",
    "complaint": "/complaint/1",
    "statistics": "/statistics",
    "translated": "/meaning",
    "translated pair": "/meaning/4100000/4104002",
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


@pytest.fixture(scope="module")
def desk_with_translation(desk: Desk) -> Desk:
    """The shared desk, whose ledger has a pair of stories in two languages and a complaint besides."""
    with closing(connect(desk.neardup.ledger)) as db:
        a, b = 4100000, 4104002
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories WHERE id IN (?, ?)", (a, b)))
        chunks = [ChunkPair(0, 0, 0.71), ChunkPair(1, 1, 0.5)]
        put_complaint(db, b, 4104005)
        meaning_flags.put(db, [MeaningFlag(a, b, TRANSLATED, 0.41, chunks, hash_of[a], hash_of[b])], "m")
    return desk


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
    browser: Browser, desk: Desk, shots: Path, pages: Mapping[str, str], widths: Sequence[int], **options: Any
) -> dict[str, int]:
    """The height of each page in pixels, in a window of the least width; keeps a picture of each page in each window.

    Fails where a page is wider than its window, where a text is squeezed into a column of single letters, and where
    axe-core finds a violation.
    """
    found, heights = dict[tuple[str, int], str](), dict[str, int]()
    with signed_in(browser, desk, shots, **options) as asha:
        for name, path in pages.items():
            page = asha.go(path)
            assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("system-ui"), "no style sheet"
            for width in widths:
                page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
                assert asha.fits(), f"{name} is wider than {width} pixels"
                assert not (squeezed := page.evaluate(SQUEEZED)), f"{name} at {width} pixels squeezes {squeezed}"
                if violations := find_violations(page):
                    found[name, width] = violations
                asha.shot(f"{name}-{options.get('locale', 'en')}-{width}")
                heights.setdefault(name, page.evaluate("document.documentElement.scrollHeight"))
        asha.expect_status(404)
    assert not found, "\n".join(f"{name}: {report}" for name, report in found.items())
    return heights


def test_no_page_breaks_a_rule_of_accessibility(browser: Browser, desk_with_translation: Desk, shots: Path) -> None:
    audited(browser, desk_with_translation, shots, PAGES, list(HEIGHTS))


def test_no_page_in_hindi_and_in_the_dark_breaks_a_rule_of_accessibility(
    browser: Browser, desk_with_translation: Desk, shots: Path
) -> None:
    audited(browser, desk_with_translation, shots, PAGES, [360], locale="hi", color_scheme="dark", has_touch=True)


def test_no_page_of_long_stories_breaks_a_rule_or_is_too_long_on_a_phone(
    browser: Browser, long_desk: Desk, shots: Path
) -> None:
    heights = audited(browser, long_desk, shots, LONG_PAGES, [360], color_scheme="dark", has_touch=True)
    assert max(heights.values()) <= MOST_PIXELS, heights


@pytest.mark.parametrize(("window", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide", "narrow"])
def test_files_break_no_rule_of_accessibility(
    browser: Browser, files: list[Path], shots: Path, window: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_page(viewport={"width": window[0], "height": window[1]}, color_scheme=scheme)
    for path in files:
        page.goto(path.as_uri())
        assert not (violations := find_violations(page)), f"{path.name}: {violations}"
        assert page.evaluate("document.documentElement.scrollWidth") <= window[0], f"{path.name} is too wide"
        assert not (squeezed := page.evaluate(SQUEEZED)), f"{path.name} squeezes {squeezed}"
        take_shot(page, shots, f"{path.stem}-{window[0]}")
    page.close()


def test_verdict_is_in_reach_all_along_a_page(browser: Browser, long_desk: Desk, shots: Path) -> None:
    with signed_in(browser, long_desk, shots, window=NARROW, has_touch=True) as asha:
        for name in DECIDED:
            page = asha.go(LONG_PAGES[name])
            for part in (0, 0.3, 0.6, 1):
                page.evaluate("(part) => scrollTo(0, part * document.documentElement.scrollHeight)", part)
                expect(page.get_by_role("button", name="Plagiarism")).to_be_in_viewport()
            bar = page.locator(".verdicts").bounding_box()
            assert bar and bar["height"] < NARROW[1] / 8, f"the bar of {name} hides the page"


def test_passages_beyond_ten_open_without_scripts(browser: Browser, long_desk: Desk, shots: Path) -> None:
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
