"""Laws of verdicts: each is stored with its moderator and time, none is overwritten by another moderator unseen, and
each can be undone: by keyboard, by mouse, and without scripts.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import Row, now_ms, read, verdicts
from neardup.records import DECIDING
from playwright.sync_api import Browser, Page, expect

from tests.moderation.browser.conftest import copy_of, filled, restore
from tests.support.command import Neardup
from tests.support.desk_browser import Desk, Moderator, decide_by_keys, find_violations, serving, signed_in
from tests.support.desk_client import cluster_of, pairs_of

TwoModerators = tuple[Desk, Moderator, Moderator]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of four copies of one story and a pair of another."""
    folder = tmp_path_factory.mktemp("copies")
    return filled(folder, cluster_of(folder / "corpus", 4))


@pytest.fixture(scope="module")
def served_copies(copies: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    copy = copy_of(copies, tmp_path_factory.mktemp("served") / "copy")
    copy.configure((copy.folder / "config.toml").read_text().replace(str(copies.folder), str(copy.folder)))
    with serving(copy) as open_desk:
        yield open_desk


@pytest.fixture
def desk(desk: Desk, samples: Neardup) -> Iterator[Desk]:
    yield desk
    restore(desk.neardup, samples)


@pytest.fixture
def desk_of_copies(served_copies: Desk, copies: Neardup) -> Iterator[Desk]:
    yield served_copies
    restore(served_copies.neardup, copies)


@pytest.fixture
def two_moderators(browser: Browser, desk_of_copies: Desk, shots: Path) -> Iterator[TwoModerators]:
    with signed_in(browser, desk_of_copies, shots) as asha, signed_in(browser, desk_of_copies, shots, "Ravi") as ravi:
        yield desk_of_copies, asha, ravi


def statuses(desk: Desk) -> dict[tuple[int, int], str]:
    with closing(read(desk.neardup.ledger)) as db:
        return {(a, b): status for a, b, status in db.execute("SELECT a, b, status FROM flags")}


def history(desk: Desk, pair: tuple[int, int]) -> list[Row]:
    with closing(read(desk.neardup.ledger)) as db:
        return verdicts.list_of_pair(db, *pair)


def pair_on(page: Page) -> tuple[int, int]:
    a, b = page.url.partition("/pair/")[2].partition("?")[0].split("/")
    return int(a), int(b)


def test_verdict_is_given_and_undone_by_keys_alone(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/?language=HINDI")
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/case/**")
    page.locator("section.evidence a.row").first.press("Enter")
    page.wait_for_url("**/pair/**")
    first = pair_on(page)
    page.keyboard.press("c")
    page.keyboard.type("वही कहानी, 1 और 2")
    page.keyboard.press("Escape")
    before = now_ms()
    page.keyboard.press("1")
    page.wait_for_url("**done=**")
    assert "/pair/{}/{}?".format(*first) not in page.url, "the desk did not go on"
    expect(page.get_by_role("status")).to_contain_text(f"Stories {first[0]} and {first[1]}: plagiarism")
    asha.shot("decided", whole=False)
    (row,) = history(desk, first)
    assert (row["verdict"], row["note"], row["moderator"]) == ("plagiarism", "वही कहानी, 1 और 2", "Asha")
    assert before <= row["decided_at"] <= now_ms()
    assert statuses(desk)[first] == "plagiarism"
    page.keyboard.press("u")
    page.wait_for_url(f"**/pair/{first[0]}/{first[1]}?**")
    assert statuses(desk)[first] == "open"
    (row,) = history(desk, first)
    assert (row["undone_by"], row["undone_at"] >= row["decided_at"]) == ("Asha", True)
    expect(page.get_by_role("status")).to_have_count(0)
    expect(page.locator(".history li.undone")).to_have_count(1)


@pytest.mark.parametrize(("key", "verdict"), list(zip("12345", DECIDING, strict=True)))
def test_each_verdict_has_its_key(asha: Moderator, desk: Desk, key: str, verdict: str) -> None:
    page = asha.go("/pair/4104002/4104005")
    page.keyboard.press(key)
    page.wait_for_url("**done=**")
    assert statuses(desk)[4104002, 4104005] == verdict


def test_case_is_worked_through_pair_by_pair(browser: Browser, desk_of_copies: Desk, shots: Path) -> None:
    desk = desk_of_copies
    in_case = {pair for pair in statuses(desk) if pair[0] < 200}
    with signed_in(browser, desk, shots) as asha:
        page = asha.go("/case/100?sort=stories&at=0")
        page.locator("section.evidence a.row").first.click()
        for _ in in_case:
            page.wait_for_url("**/pair/**")
            pair = pair_on(page)
            page.get_by_role("button", name="Quotation").click()
            expect(page).not_to_have_url(re.compile("/pair/{}/{}[?]".format(*pair)))
        page.wait_for_url("**/case/100?sort=stories&at=0&done=**")
        assert {pair for pair, status in statuses(desk).items() if status == "quotation"} == in_case
        page.get_by_role("button", name="Undo").click()
        page.wait_for_url("**/pair/**")
        page.get_by_role("navigation", name="Case").get_by_role("link", name="Case", exact=True).click()
        expect(page.get_by_text("It is given on the one open pair.")).to_be_visible()


def test_neighbours_of_a_pair_are_those_of_its_case(browser: Browser, desk_of_copies: Desk, shots: Path) -> None:
    with signed_in(browser, desk_of_copies, shots) as asha:
        page = asha.go("/case/100?sort=stories&at=0")
        hrefs = [row.get_attribute("href") or "" for row in page.locator("section.evidence a.row").all()]
        assert len(hrefs) > 2
        page.goto(asha.address + hrefs[0])
        expect(page.get_by_role("link", name="Previous")).to_have_count(0)
        for href in hrefs[1:]:
            page.get_by_role("link", name="Next").click()
            page.wait_for_url(f"{asha.address}{href}")
        expect(page.get_by_role("link", name="Next")).to_have_count(0)
        page.get_by_role("link", name="Previous").click()
        page.wait_for_url(f"{asha.address}{hrefs[-2]}")
        page.get_by_role("navigation", name="Case").get_by_role("link", name="Case", exact=True).click()
        page.wait_for_url(f"{asha.address}/case/100?sort=stories&at=0")


def test_text_typed_into_a_field_triggers_no_shortcuts(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/pair/4104002/4104005")
    for field in ("Note", "Story, author"):
        page.get_by_label(field).press_sequentially("1j2k3u4/5?np")
        assert page.get_by_label(field).input_value() == "1j2k3u4/5?np"
    assert set(statuses(desk).values()) == {"open"}


def test_key_pressed_twice_gives_one_verdict(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/pair/4104002/4104005")
    page.evaluate(
        "for (const _ of [1, 2]) document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '5', bubbles: true}))"
    )
    page.wait_for_url("**done=**")
    assert len(history(desk, (4104002, 4104005))) == 1


def test_case_is_decided_with_three_keys_and_leads_to_the_next(
    browser: Browser, desk_of_copies: Desk, shots: Path
) -> None:
    desk = desk_of_copies
    with signed_in(browser, desk, shots) as asha:
        page = asha.go("/?sort=stories")
        expect(page.locator("h1")).to_have_text("2 cases")
        asha.shot("cases")
        for key in ("j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**/case/100?**")
        expect(page.locator(".around")).to_contain_text("1 of 2")
        assert page.locator(".cluster svg circle").count() == 4, "the cluster is not drawn"
        asha.shot("case-of-4")
        in_case = {pair for pair in statuses(desk) if pair[0] < 200}
        page.keyboard.press("4")
        page.wait_for_url("**/case/200?**")
        expect(page.locator(".around")).to_contain_text("1 of 1")
        expect(page.get_by_role("status")).to_contain_text(f"{len(in_case)} pairs: template")
        assert {pair for pair, status in statuses(desk).items() if status == "template"} == in_case
        page.keyboard.press("u")
        page.wait_for_url("**/case/100?**")
        assert set(statuses(desk).values()) == {"open"}


def test_fifty_cases_are_decided_by_keyboard(browser: Browser, shots: Path, tmp_path: Path) -> None:
    neardup = filled(tmp_path, pairs_of(tmp_path / "corpus", 50, 60))
    with serving(neardup) as desk, signed_in(browser, desk, shots) as asha:
        assert len(decide_by_keys(asha, 50)) == 50
        expect(asha.page.locator(".empty")).to_contain_text("All decided")
        assert list(statuses(desk).values()) == ["plagiarism"] * 50


def test_two_moderators_never_hold_one_case(two_moderators: TwoModerators) -> None:
    desk, asha, ravi = two_moderators
    asha.go("/case/100?sort=stories&at=0")
    page = ravi.go("/case/100?sort=stories&at=0")
    expect(page.get_by_role("status")).to_contain_text("Asha has this case open")
    expect(page.locator("button[name=verdict]")).to_have_count(0)
    page.keyboard.press("1")
    assert set(statuses(desk).values()) == {"open"}
    page.keyboard.press("j")
    page.wait_for_url("**/case/200?**")
    asha.page.get_by_role("button", name="Plagiarism").click()
    asha.page.wait_for_url("**done=**")
    assert "/case/" not in asha.page.url, "the next case is Ravi's"
    ravi.shot("leased")


def test_second_opinion_is_asked_and_given(two_moderators: TwoModerators) -> None:
    desk, asha, ravi = two_moderators
    page = asha.go("/case/100?at=0")
    page.keyboard.press("6")
    page.wait_for_url("**done=**")
    assert set(statuses(desk).values()) == {"open"}, "an unsure verdict closes nothing"
    page = ravi.go("/")
    page.get_by_role("link", name="Second opinion asked").click()
    expect(page.locator("a.row")).to_have_count(1)
    expect(page.locator(".queue")).to_contain_text("asked by Asha")
    page.get_by_label("choose").check()
    page.get_by_text("One verdict on the chosen cases").click()
    page.get_by_role("button", name="Not similar").click()
    page.wait_for_url("**done=**")
    assert {status for (a, _), status in statuses(desk).items() if a < 200} == {"not_similar"}
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/case/100**")
    assert set(statuses(desk).values()) == {"open"}


def test_last_decisions_are_undone_in_their_order(two_moderators: TwoModerators) -> None:
    desk, asha, ravi = two_moderators
    for path, verdict in (
        ("/pair/200/201", "Template"),
        ("/pair/100/101", "Plagiarism"),
        ("/pair/101/102", "Quotation"),
    ):
        asha.go(path).get_by_role("button", name=verdict).click()
        asha.page.wait_for_url("**done=**")
    ravi.go("/pair/100/101").get_by_role("button", name="Template").click()
    ravi.page.wait_for_url("**done=**")
    page = asha.go("/decisions")
    expect(page.locator(".decided > li")).to_have_count(3)
    expect(page.locator(".decided > li").nth(1)).to_contain_text("Ravi built upon it: template")
    assert not find_violations(page)
    asha.shot("decisions")
    for undone in (1, 2):
        page.keyboard.press("u")
        expect(page.get_by_text("undone by Asha")).to_have_count(undone)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert {pair: status for pair, status in statuses(desk).items() if status != "open"} == {(100, 101): "template"}


def test_second_moderator_sees_the_conflict(browser: Browser, desk: Desk, shots: Path) -> None:
    path, pair = "/pair/4104002/4104005", (4104002, 4104005)
    with signed_in(browser, desk, shots) as asha, signed_in(browser, desk, shots, "Ravi <b>") as ravi:
        for moderator in (asha, ravi):
            moderator.go(path)
        asha.page.get_by_label("Note").fill("seen in print")
        asha.page.get_by_role("button", name="Plagiarism").click()
        asha.page.wait_for_url("**done=**")
        ravi.page.get_by_label("Note").fill("मेरी टिप्पणी")
        ravi.page.get_by_role("button", name="Not similar").click()
        page = ravi.page
        expect(page.locator("h1")).to_have_text("Not stored")
        ravi.expect_status(409)
        expect(page.get_by_role("alert")).to_contain_text("Asha judged plagiarism")
        assert not find_violations(page)
        expect(page.locator(".history")).to_contain_text("seen in print")
        expect(page.get_by_label("Note")).to_have_value("मेरी टिप्पणी")
        ravi.shot("conflict")
        assert statuses(desk)[pair] == "plagiarism", "the first verdict was overwritten"
        page.get_by_role("button", name="Not similar").click()
        page.wait_for_url("**done=**")
        assert statuses(desk)[pair] == "not_similar", "the second verdict was not stored"
        assert [(row["moderator"], row["note"]) for row in history(desk, pair)] == [
            ("Ravi <b>", "मेरी टिप्पणी"),
            ("Asha", "seen in print"),
        ]
        asha.page.get_by_role("button", name="Undo").click()
        expect(asha.page.locator("h1")).to_have_text("Not stored")
        asha.expect_status(409)
        assert statuses(desk)[pair] == "not_similar", "a verdict was undone unseen"


def test_desk_works_without_scripts(browser: Browser, desk: Desk, shots: Path) -> None:
    with signed_in(browser, desk, shots, java_script_enabled=False) as asha:
        page = asha.go("/")
        page.get_by_label("Story, author").fill("4104002")
        page.get_by_role("button", name="Search").click()
        page.wait_for_url("**/story/4104002")
        page.get_by_role("link", name="Case", exact=True).click()
        page.locator("a.row").click()
        first = pair_on(page)
        page.locator(".story mark[id^=a] .jump").first.click()
        assert "#b1" in page.url, "passages are not linked"
        page.get_by_text("Keyboard").click()
        page.get_by_label("Note").fill("line 1\nline 2")
        page.get_by_role("button", name="Author’s own repost").click()
        page.wait_for_url("**done=**")
        assert [row["note"] for row in history(desk, first)] == ["line 1\nline 2"]
        page.get_by_role("button", name="Undo").click()
        assert statuses(desk)[first] == "open"
        page.goto(f"{desk.address}/case/4104002")
        page.get_by_role("button", name="Template").click()
        page.wait_for_url("**done=**")
        assert statuses(desk)[first] == "template"
        page.goto(f"{desk.address}/pair/{first[0]}/{first[1]}")
        expect(page.locator(".notice")).to_contain_text("Verdict: template")


def test_pair_without_a_text_can_be_decided(browser: Browser, desk_of_copies: Desk, shots: Path) -> None:
    text = desk_of_copies.neardup.folder / "corpus" / "pages" / "200.html"
    kept = text.rename(text.with_suffix(".kept"))
    with signed_in(browser, desk_of_copies, shots) as asha:
        page = asha.go("/pair/200/201")
        expect(page.locator("article[data-side=a]")).to_contain_text("Text not available")
        expect(page.locator("main")).to_contain_text("200.html")
        asha.shot("gone")
        page.keyboard.press("1")
        page.wait_for_url("**done=**")
        assert statuses(desk_of_copies)[200, 201] == "plagiarism"
    kept.rename(text)


def test_token_opens_the_desk_to_other_machines(browser: Browser, samples: Neardup) -> None:
    token = "a token for the test"
    with serving(samples, "--listen", "0.0.0.0:0", NEARDUP_REVIEW__TOKEN=token) as desk:
        page = browser.new_context().new_page()
        page.goto(desk.address.replace("0.0.0.0", "127.0.0.1") + "/?kind=near")
        assert not find_violations(page)
        page.get_by_label("The desk’s token").fill("not the token at all")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("The desk’s token").fill(token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Your name").fill("Asha")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/?kind=near")
        page.context.close()
