"""The report on a story in a browser: each passage and each source leads to both sides, by mouse, keys and links."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, read
from playwright.sync_api import Browser, Page, expect

from tests.moderation.browser.conftest import configured, copy_of, restore
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import NARROW, WIDE, Desk, Moderator, find_violations, serving, signed_in
from tests.support.desk_client import prose, write
from tests.support.languages import HINDI, URDU

HINDI_STORY, URDU_STORY, SOURCES = 5010, 6010, 10
UNDERLINED = "(one) => [getComputedStyle(one).textDecorationLine, getComputedStyle(one).textDecorationStyle].join(' ')"


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger with a story of each direction that copies 20 passages from SOURCES sources."""
    folder = tmp_path_factory.mktemp("copying")
    neardup = configured(folder, write(folder / "corpus", []))
    with closing(connect(neardup.ledger)) as db:
        for story_id, language in ((HINDI_STORY, HINDI), (URDU_STORY, URDU)):
            own = prose(story_id, 2000).split()
            texts = [prose(story_id + n, 300).split() for n in range(1, SOURCES + 1)]
            story, copied = list[str](), [list[tuple[int, int, int]]() for _ in texts]
            for n in range(2 * SOURCES):
                story += own[30 * n : 30 * n + 30]
                words = 20 + 60 // (n % SOURCES + 1)
                copied[n % SOURCES].append((len(story), 100 * (n // SOURCES), words))
                story += texts[n % SOURCES][100 * (n // SOURCES) :][:words]
            sources = [CopiedFrom(text, spans, title="स्रोत") for text, spans in zip(texts, copied, strict=True)]
            write_copying_story(folder / "corpus" / "pages", db, story_id, language, story, sources, title="लंबी")
    return neardup


@pytest.fixture(scope="module")
def desk(copying: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with serving(copy_of(copying, tmp_path_factory.mktemp("served") / "copy")) as open_desk:
        yield open_desk


def expect_both_sides_at(page: Page, words: list[str]) -> None:
    """Wait until both stories show the passage that begins with these words."""
    page.wait_for_url("**/pair/**#here")
    for side in "ab":
        mark = page.locator(f"article[data-side={side}] mark", has_text=" ".join(words)).first
        expect(mark).to_be_in_viewport()


@pytest.mark.parametrize("story", [HINDI_STORY, URDU_STORY])
def test_passage_leads_to_both_sides(asha: Moderator, story: int) -> None:
    page = asha.go(f"/story/{story}")
    mark = page.locator(".report mark[data-passage='13']").last
    words = mark.inner_text().split()[:5]
    mark.click(position={"x": 60, "y": 10})
    expect_both_sides_at(page, words)
    page.get_by_role("link", name=f"Story {story}").click()
    page.wait_for_url(f"**/story/{story}**")
    page.locator(".report mark[data-passage='2'] .jump").click()
    expect_both_sides_at(page, prose(story + 2, 300).split()[:3])


def test_source_leads_to_both_sides_and_to_its_passage(asha: Moderator) -> None:
    page = asha.go(f"/story/{HINDI_STORY}")
    expect(page.locator(".sources li")).to_have_count(SOURCES)
    page.locator(".sources li").nth(4).locator("a.number").click()
    expect(page.locator(".report mark:target")).to_be_in_viewport()
    assert page.locator(".report mark:target .jump").inner_text().endswith("5")
    page.locator(".sources li").nth(4).locator("a.source").click()
    page.wait_for_url("**/pair/**#here")


def test_source_that_is_left_out_changes_the_share(asha: Moderator) -> None:
    page = asha.go(f"/story/{HINDI_STORY}")
    whole, marks = page.locator("h1").inner_text(), page.locator(".report .jump").count()
    page.get_by_role("link", name="Leave this source out").first.click()
    page.wait_for_url("**without=**#sources")
    expect(page.locator("h1")).to_contain_text("without the source that is left out")
    assert page.locator("h1").inner_text()[:4] < whole[:4]
    assert page.locator(".report .jump").count() == marks - 2, "two passages are of this source alone"
    assert not find_violations(page)
    asha.shot("left-out")
    page.get_by_role("link", name="Count this source again").click()
    expect(page.locator("h1")).to_have_text(whole)


def test_keys_go_from_passage_to_passage_and_decide(
    browser: Browser, desk: Desk, copying: Neardup, shots: Path
) -> None:
    with signed_in(browser, desk, shots) as asha:
        asha.go(f"/story/{HINDI_STORY}")  # so that a process has read its text
        page = asha.go("/")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/case/**")
        for key, passage in (("n", 1), ("n", 2), ("n", 3), ("p", 2)):
            page.keyboard.press(key)
            focused = "document.activeElement.closest('mark').dataset.passage"
            assert page.evaluate(focused) == str(passage)
        page.keyboard.press("1")
        page.wait_for_url("**done=**")
        with closing(read(desk.neardup.ledger)) as db:
            [(decided,)] = db.execute("SELECT count(*) FROM flags WHERE status = 'plagiarism'").fetchall()
        assert decided == SOURCES
        page.keyboard.press("u")
        page.wait_for_url(lambda url: "done=" not in url)
        with closing(read(desk.neardup.ledger)) as db:
            assert {row[0] for row in db.execute("SELECT status FROM flags")} == {"open"}
    restore(desk.neardup, copying)


@pytest.mark.parametrize(("scheme", "window"), [("light", WIDE), ("dark", NARROW)], ids=["wide", "narrow"])
def test_report_fits_and_reads_in_its_direction(
    browser: Browser, desk: Desk, shots: Path, scheme: str, window: tuple[int, int]
) -> None:
    with signed_in(browser, desk, shots, color_scheme=scheme, window=window) as asha:
        for story, direction in ((HINDI_STORY, "ltr"), (URDU_STORY, "rtl")):
            page = asha.go(f"/story/{story}")
            assert asha.fits()
            paragraph = page.locator(".report .text > p").first
            assert paragraph.evaluate("(one) => getComputedStyle(one).direction") == direction
            backgrounds = page.locator(".report mark[data-passage]").evaluate_all(
                "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
            )
            assert len(set(backgrounds)) == 9, "eight sources have colours of their own, the others share one"
            asha.shot(f"report-{story}-{scheme}-{window[0]}", whole=False)


def test_printed_report_underlines_what_is_copied(asha: Moderator) -> None:
    page = asha.go(f"/story/{HINDI_STORY}")
    page.emulate_media(media="print")
    marks = page.locator(".report mark[data-passage]")
    assert set(marks.evaluate_all(f"(all) => all.map({UNDERLINED})")) == {"underline solid"}
    expect(page.locator(".report .jump").first).to_be_visible()
    expect(page.locator(".judge")).to_be_hidden()
    cut = "(all) => all.filter((one) => one.scrollHeight > one.clientHeight + 1).length"
    assert page.locator(".sources").evaluate_all(cut) == 0, "the list of sources is cut"


def test_report_works_without_scripts(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, java_script_enabled=False) as asha:
        page = asha.go(f"/story/{HINDI_STORY}")
        page.locator(".report .jump").nth(3).click()
        assert page.url.endswith("#here")
        expect(page.locator("mark:has(> #here)")).to_be_in_viewport()
