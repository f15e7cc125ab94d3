"""What a lead looks after, in a browser: authors who are hidden, saved notes, charts, and blind second reviews."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect, read, transaction
from neardup.records import Verdict
from playwright.sync_api import Browser, Page, expect

from tests.moderation.browser.conftest import configured, copy_of, restore
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import Desk, Moderator, find_violations, serving, signed_in
from tests.support.desk_client import prose, write
from tests.support.languages import HINDI
from tests.support.verdicts import decide_case

NOTES = '{ en = ["Word for word", "By the poet"], hi = ["शब्दशः"] }'
COPIES = range(1001, 1041, 10)  # the stories of "copier", each with one source, the story before it


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of COPIES, each a case with one pair."""
    folder = tmp_path_factory.mktemp("oversight")
    neardup = configured(folder, f"{write(folder / 'corpus', [])}[review]\nnotes = {NOTES}\nsecond_reviews = 1.0\n")
    with closing(connect(neardup.ledger)) as db:
        for story in COPIES:
            text = prose(story).split()
            source = CopiedFrom(text, [(0, 0, len(text))], title="स्रोत")
            write_copying_story(folder / "corpus" / "pages", db, story, HINDI, text, [source], title=f"प्रति {story}")
    return neardup


@pytest.fixture(scope="module")
def shared(copying: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with serving(copy_of(copying, tmp_path_factory.mktemp("served") / "copy")) as open_desk:
        yield open_desk


@pytest.fixture
def desk(shared: Desk, copying: Neardup) -> Iterator[Desk]:
    yield shared
    restore(shared.neardup, copying)


def is_accessible(page: Page) -> bool:
    return not find_violations(page)


def hidden(desk: Desk) -> list[int]:
    with closing(read(desk.neardup.ledger)) as db:
        return [row[0] for row in db.execute("SELECT story_id FROM hidden_stories ORDER BY 1")]


def test_undecided_stories_of_an_author_are_hidden_and_shown_again(asha: Moderator, desk: Desk) -> None:
    asha.go(f"/case/{COPIES[0]}").get_by_role("button", name="Plagiarism").click()
    page = asha.page
    page.wait_for_url("**done=**")
    page.goto(f"{asha.address}/author/copier")
    expect(page.get_by_role("row", name="Copies by the author", exact=False).first).to_contain_text("1")
    page.get_by_label("Reason").fill("बार-बार")
    page.get_by_role("button", name="Hide the author’s undecided stories").click()
    expect(page.get_by_role("status")).to_contain_text("are hidden, by Asha")
    assert hidden(desk) == list(COPIES[1:]), "the story with a verdict is not hidden"
    assert is_accessible(page)
    for width in asha.windows():
        assert asha.fits(), width
        asha.shot(f"author-{width}")
    page.goto(f"{asha.address}/case/{COPIES[1]}")
    expect(page.get_by_text("asked to hide this story")).to_be_visible()
    page.get_by_role("button", name="Quotation").click()
    page.wait_for_url("**done=**")
    assert hidden(desk) == list(COPIES[2:]), "a decided story is still hidden"
    page.goto(f"{asha.address}/author/copier")
    page.get_by_role("button", name="Show the author’s stories again").click()
    expect(page.get_by_text("Hidden before")).to_be_visible()
    assert hidden(desk) == []


@pytest.mark.parametrize("author", [".", "..", "कवि/१?#%2F"])
def test_an_author_whose_id_is_a_step_between_folders_has_a_page(asha: Moderator, desk: Desk, author: str) -> None:
    with closing(connect(desk.neardup.ledger)) as db, transaction(db):
        db.execute("UPDATE stories SET author_id = ? WHERE author_id = 'copier'", (author,))
    page = asha.go(f"/story/{COPIES[0]}")
    page.get_by_role("link", name=author, exact=True).first.click()
    expect(page.locator("h1")).to_have_text(f"Author {author}")
    page.get_by_role("button", name="Hide the author’s undecided stories").click()
    expect(page.get_by_role("status")).to_contain_text("are hidden, by Asha")
    assert hidden(desk) == list(COPIES)


def test_a_copy_is_permitted_from_its_pair(asha: Moderator, desk: Desk) -> None:
    later = COPIES[0]
    page = asha.go(f"/pair/{later - 1}/{later}")
    page.get_by_role("link", name="This copy is permitted").click()
    expect(page.get_by_label("Only this story")).to_have_value(str(later - 1))
    page.get_by_label("Until").fill("2020-01-01")
    page.get_by_role("button", name="Enter the permission").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was stored: the permission ended already")
    asha.expect_status(400)
    page.get_by_label("Until").fill("2999-01-01")
    page.get_by_label("Licence").fill("CC BY 4.0")
    page.get_by_role("button", name="Enter the permission").click()
    row = page.get_by_role("row", name="in force")
    expect(row).to_contain_text("CC BY 4.0")
    assert is_accessible(page)
    for width in asha.windows():
        assert asha.fits(), width
        asha.shot(f"permissions-{width}")
    pair = asha.go(f"/pair/{later - 1}/{later}")
    expect(pair.get_by_text("covers this copy, CC BY 4.0, until 1 January 2999")).to_be_visible()
    assert is_accessible(pair)
    asha.go("/permissions").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("revoked by Asha")).to_be_visible()
    with closing(read(desk.neardup.ledger)) as db:
        assert db.execute("SELECT status FROM flags WHERE b = ?", (later,)).fetchone() == ("open",)


def test_saved_note_is_chosen_with_keys_and_edited(asha: Moderator, desk: Desk) -> None:
    page = asha.go(f"/case/{COPIES[0]}")
    for key in ("s", "ArrowDown", "ArrowDown", "Enter", "End"):
        page.keyboard.press(key)
    page.keyboard.type(", page 7")
    expect(page.get_by_label("Note", exact=True)).to_have_value("By the poet, page 7")
    assert is_accessible(page)
    asha.shot("saved-note", whole=False)
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.wait_for_url("**done=**")
    with closing(read(desk.neardup.ledger)) as db:
        [(note,)] = db.execute("SELECT note FROM verdicts").fetchall()
    assert note == "By the poet, page 7"


def test_charts_of_the_statistics_are_as_high_as_their_tables_say(asha: Moderator, desk: Desk) -> None:
    with closing(connect(desk.neardup.ledger)) as db:
        for n, story in enumerate(COPIES[:3]):
            decide_case(db, story, Verdict.PLAGIARISM if n else Verdict.NOT_SIMILAR)
        with transaction(db):
            db.execute("UPDATE verdicts SET decided_at = decided_at - 86400000 WHERE b = ?", (COPIES[0],))
            db.execute("UPDATE flags SET flagged_at = flagged_at - 2 * 86400000")
    page = asha.go("/statistics")
    drawn = page.locator("section:has(#by-moderator) rect")
    titles = [title.partition(", ")[2] for title in drawn.locator("title").all_text_contents()]
    assert titles == ["Asha: 1", "Asha: 2"], "one case was decided yesterday and two today"
    heights = drawn.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert abs(2 * heights[0] - heights[1]) < 2, "the columns are not in proportion"
    expect(page.get_by_text("Time from the first flag to the decision of 3 cases: median 2 days")).to_be_visible()
    page.locator("section:has(#by-moderator) summary").click()
    rows = page.locator("section:has(#by-moderator) tbody tr").all_inner_texts()
    assert [row.split("\t")[1:] for row in rows] == [["2", "2"], ["1", "1"]]
    for width in asha.windows():
        assert asha.fits(), width
        assert is_accessible(page), width
        asha.shot(f"statistics-{width}")


def test_second_review_is_blind_and_a_disagreement_is_open_for_a_third(
    browser: Browser, asha: Moderator, desk: Desk, shots: Path
) -> None:
    with closing(connect(desk.neardup.ledger)) as db:
        for story in COPIES[:2]:
            decide_case(db, story, Verdict.PLAGIARISM, "by Asha")
    expect(asha.go("/second").get_by_text("No case waits for a second review by you.")).to_be_visible()
    with signed_in(browser, desk, shots, "Ravi") as ravi:
        page = ravi.go("/second")
        expect(page.get_by_text("2 cases wait for you.")).to_be_visible()
        assert is_accessible(page)
        for width in ravi.windows():
            assert ravi.fits(), width
            ravi.shot(f"second-{width}")
        page.locator("section.evidence a.row").click()
        page.wait_for_url("**blind=1")
        for shown in (page, ravi.go("/second")):
            texts = shown.locator("main").inner_text()
            assert not any(word in texts for word in ("by Asha", "Verdict:", "verdict plagiarism"))
        page.keyboard.press("1")
        expect(page.get_by_text("1 case waits for you.")).to_be_visible()
        page.get_by_label("Note", exact=True).fill("no copy")
        page.get_by_role("button", name="Not similar").click()
        expect(page.get_by_text("No case waits for a second review by you.")).to_be_visible()
        expect(ravi.go("/?inbox=third").locator("h1")).to_have_text("0 cases")
    with signed_in(browser, desk, shots, "Chitra") as chitra:
        page = chitra.go("/")
        page.get_by_role("link", name="Two disagreed").click()
        page.locator("a.row").click()
        expect(page.get_by_text("Judged twice: Asha says plagiarism; Ravi, who was not shown that")).to_be_visible()
        page.get_by_role("button", name="Plagiarism").click()
        page.wait_for_url("**done=**")
        page = chitra.go("/statistics")
        expect(page.get_by_text("2 cases were judged twice, 1 of them alike: 50")).to_be_visible()
        expect(page.get_by_text("Cohen’s kappa is 0.00 (n = 2)")).to_be_visible()
        assert is_accessible(page)
