"""What moderators see: the queue, a pair in each language, filters and search, in any window."""

import re
from contextlib import closing

import pytest
from neardup.core.verify.tiers import NEAR
from neardup.ledger import case_queue, read
from neardup.ledger.case_queue import CaseSelection, Order
from neardup.records import Language
from playwright.sync_api import expect

from tests.support.desk_browser import Desk, Moderator
from tests.support.languages import CODES, HINDI, SAMPLED


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
    """The pages themselves fit as test_small_windows tries them."""
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
