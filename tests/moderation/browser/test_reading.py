"""What moderators see: the queue, a pair in each language, the plot of two serials, filters and search."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from neardup.core.verify.tiers import NEAR
from neardup.ledger import case_queue, connect, read, serials, transaction
from neardup.ledger.case_queue import CaseSelection, Order
from neardup.records import Language
from playwright.sync_api import expect

from tests.moderation.browser.conftest import restore
from tests.support.command import Neardup
from tests.support.desk_browser import Desk, Moderator, find_violations
from tests.support.languages import CODES, HINDI, SAMPLED

CHAPTERS = 3


def listed(desk: Desk, selection: CaseSelection) -> list[int]:
    with closing(read(desk.neardup.ledger)) as db:
        return case_queue.select_ids(db, selection, Order.SIMILARITY, limit=-1, offset=0)


def test_queue_lists_every_case_the_most_similar_first(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/")
    expected = listed(desk, CaseSelection())
    hrefs = [row.get_attribute("href") for row in page.locator("a.row").all()]
    assert hrefs == [f"/case/{case_id}?at={n}" for n, case_id in enumerate(expected)][:10]


@pytest.mark.parametrize("language", SAMPLED)
def test_pair_in_each_language(asha: Moderator, language: Language) -> None:
    page = asha.go("/")
    page.get_by_text("Filters").click()
    page.get_by_role("navigation", name="Languages").get_by_role("link", name=language.title()).click()
    page.locator("a.row").first.click()
    row = page.locator("section.evidence a.row").first
    titles = row.locator("bdi").all_inner_texts()
    row.click()
    expect(page.locator("h1")).to_contain_text("also in")
    for side, title in zip("ab", titles, strict=True):
        article = page.locator(f"article[data-side={side}]")
        expect(article.locator("h2")).to_contain_text(title)
        expect(article.locator(".story")).to_have_attribute("lang", CODES[language])
        assert article.locator("mark").count(), "the copied passages are marked"
        assert len(article.locator(".story").inner_text()) > 200
    assert asha.fits()
    asha.shot(f"pair-{CODES[language]}", whole=False)


def test_every_view_of_a_page_fits_its_window(asha: Moderator) -> None:
    """The pages themselves fit as test_access tries them."""
    for name, path in {
        "order": "/?sort=stories&status=every",
        "filters": "/?status=every&similarity=0.5",
        "nothing": "/?status=judged",
        "pair": "/pair/4104002/4104005?at=19",
        "near": "/pair/4100001/4100007?at=11",
        "help": "/#help",
    }.items():
        page = asha.go(path)
        if name == "help":
            page.keyboard.press("?")
            expect(page.locator("#help dl")).to_be_visible()
        for width in asha.windows():
            assert asha.fits(), f"{name} is wider than {width} pixels"
            asha.shot(f"{name}-{width}", whole=name not in ("pair", "near"))


def test_ten_cases_fit_a_window_each_with_its_two_titles(asha: Moderator) -> None:
    page = asha.go("/")
    rows = page.locator("a.row")
    assert rows.count() == 10
    assert rows.last.evaluate("row => row.closest('li').getBoundingClientRect().bottom <= innerHeight")
    for row in rows.all():
        assert row.locator("bdi.words").count() == 2
        expect(row).to_contain_text(re.compile(r"\d+\s% copied"))


def test_a_filter_and_its_page_stay_in_the_address(asha: Moderator) -> None:
    page = asha.go("/?status=every&sort=date")
    page.get_by_role("link", name="Next", exact=True).click()
    page.locator("a.row").nth(2).click()
    page.wait_for_url("**/case/**at=12")
    page.get_by_role("navigation", name="The queue").get_by_role("link", name="Cases", exact=True).click()
    page.wait_for_url(f"{asha.address}/?status=every&sort=date&page=2")
    first = page.locator("a.row").first.get_attribute("href")
    page.reload()
    assert page.locator("a.row").first.get_attribute("href") == first
    expect(page.get_by_role("navigation", name="Status").locator("[aria-current]")).to_contain_text("All")


def test_filters_limit_the_queue(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/")
    page.get_by_text("Filters").click()
    page.get_by_role("navigation", name="Kinds").get_by_role("link", name="Near copy").click()
    expect(page.locator("a.row")).to_have_count(len(listed(desk, CaseSelection(kind=NEAR))))
    expect(page.get_by_role("navigation", name="Kinds").locator("[aria-current]")).to_contain_text("Near copy")
    page.get_by_role("navigation", name="Languages").get_by_role("link", name="Hindi").click()
    expect(page.locator("a.row")).to_have_count(len(listed(desk, CaseSelection(languages=(HINDI,), kind=NEAR))))
    asha.go("/")
    page.get_by_text("Filters").click()
    page.get_by_label("Author", exact=True).fill("7001")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("a.row")).to_have_count(len(listed(desk, CaseSelection(author="7001"))[:10]))
    page.get_by_role("link", name="All", exact=True).first.click()
    expect(page.locator("a.row")).to_have_count(len(listed(desk, CaseSelection())[:10]))


def test_search_leads_to_a_story_or_an_author(asha: Moderator) -> None:
    page = asha.go("/")
    for text, expected in (("4104002", "/story/4104002"), ("7020", "/author/7020")):
        page.get_by_label("Story, author").fill(text)
        page.get_by_role("button", name="Search").click()
        page.wait_for_url(f"{asha.address}{expected}")
        expect(page.get_by_role("main")).to_contain_text(text)
    page.get_by_label("Story, author").fill("<b>unknown</b>")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("h1")).to_contain_text("<b>unknown</b>")
    asha.expect_status(404)


def test_missing_pages_and_bad_addresses_are_reported(asha: Moderator) -> None:
    for path, status in (
        ("/pair/1/2", 404),
        ("/pair/x/y", 404),
        ("/case/1", 404),
        ("/story/1", 404),
        ("/story/x", 404),
        ("/?sort=x", 400),
        ("/nowhere", 404),
        ("/?language=klingon", 400),
        ("/?page=-1", 400),
        ("/pair/4104002/4104005?at=99999999999999", 400),
    ):
        answer = asha.page.goto(asha.address + path)
        assert answer and answer.status == status, path
        expect(asha.page.get_by_role("link", name="Back to the queue")).to_be_visible()
        asha.expect_status(status)


@pytest.fixture
def chapters(desk: Desk, samples: Neardup) -> Iterator[list[tuple[int, int]]]:
    """Pairs of stories that are flagged: the chapters of one author's serial, and of another's."""
    with closing(connect(desk.neardup.ledger)) as db:
        flagged = db.execute("SELECT a, b FROM flags WHERE kind = 'similar' AND status = 'open' ORDER BY a, b")
        of_source = dict(flagged.fetchall())
        chosen = list({b: (a, b) for a, b in of_source.items() if b not in of_source}.values())[:CHAPTERS]
        with transaction(db):
            for part, (a, b) in enumerate(chosen, 1):
                for author, story_id in (("river", a), ("house", b)):
                    title = f"{author} part {part}"
                    db.execute("UPDATE stories SET author_id = ?, title = ? WHERE id = ?", (author, title, story_id))
        serials.refresh(db)
    yield chosen
    restore(desk.neardup, samples)


def test_a_pair_of_chapters_is_entered_from_the_plot(asha: Moderator, chapters: list[tuple[int, int]]) -> None:
    page = asha.go("/serials/{}/{}".format(*chapters[0]))
    squares = page.locator("svg.dots a")
    assert squares.count() == CHAPTERS
    for width in asha.windows():
        assert asha.fits(), f"the plot is wider than {width} pixels"
    assert not find_violations(page)
    places = [(box["x"], box["y"]) for n in range(CHAPTERS) if (box := squares.nth(n).bounding_box())]
    assert places == sorted(places) and len({top for _, top in places}) == CHAPTERS, "the squares are no diagonal"
    asha.shot("serials")
    squares.nth(1).click()
    page.wait_for_url("**/pair/{}/{}".format(*chapters[1]))
    for side in "ab":
        expect(page.locator(f"article[data-side={side}] mark").first).to_be_visible()
