"""Whose text it is, in a browser: complaints, permissions, accounts that come back, proofs of what was seen first."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import cases, complaints, connect, first_seen, now_ms, read, removed_texts, stories
from neardup.ledger.removed_texts import Returned
from neardup.query.proof import make_key
from neardup.records import Verdict
from playwright.sync_api import Page, expect

from tests.moderation.browser.conftest import configured, copy_of, restore
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import Desk, Moderator, find_violations, serving
from tests.support.desk_client import prose, write
from tests.support.languages import HINDI
from tests.support.verdicts import CONTACT, PERSON, STATEMENT, give_verdict

ORIGINAL, COPY = 1000, 1001  # by asha and by copier
REMOVED, RETURNED = 2001, 3001  # copies of one text: that by copier was removed, that by the account new came later
TEXTS = [prose(n, 200).split() for n in range(2)]


@pytest.fixture(scope="module")
def wronged(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A ledger of COPY and of RETURNED, which signs proofs."""
    folder = tmp_path_factory.mktemp("rights")
    neardup = configured(folder, f"{write(folder / 'corpus', [])}[review]\ncomplaint_days = 3\n")
    pages = folder / "corpus" / "pages"
    with closing(connect(neardup.ledger)) as db:
        removed_texts.keep_for(db, 30, now_ms())
        for story, text, author in (
            (COPY, TEXTS[0], "copier"),
            (REMOVED, TEXTS[1], "copier"),
            (RETURNED, TEXTS[1], "new"),
        ):
            write_copying_story(pages, db, story, HINDI, text, [CopiedFrom(text, [(0, 0, 200)], "asha")], author=author)
        give_verdict(db, [(REMOVED - 1, REMOVED)], Verdict.PLAGIARISM)
        stories.erase(db, [REMOVED])
        [number] = db.execute("SELECT number FROM stories WHERE id = ?", (RETURNED,)).fetchone()
        removed_texts.record_checked(db, [Returned(number, REMOVED, "exact", 1.0)], number)
        first_seen.append(db, [COPY], [bytes(32)], now_ms())
        cases.refresh(db)
    return neardup


@pytest.fixture(scope="module")
def shared(wronged: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    copied = copy_of(wronged, tmp_path_factory.mktemp("served") / "copy")
    make_key(copied.folder / "proof.key")
    with serving(copied, NEARDUP_LEDGER__PROOF_KEY=str(copied.folder / "proof.key")) as open_desk:
        yield open_desk


@pytest.fixture
def desk(shared: Desk, wronged: Neardup) -> Iterator[Desk]:
    yield shared
    restore(shared.neardup, wronged)


def shows_well(moderator: Moderator, name: str) -> None:
    """The page fits a phone and a wide window, and breaks no rule of accessibility."""
    for width in moderator.windows():
        assert moderator.fits(), f"{name} is wider than {width} pixels"
        assert not find_violations(moderator.page), name
        moderator.shot(f"{name}-{width}")


def fill_complaint(page: Page, **fields: str) -> None:
    page.get_by_text("Record a complaint about this story").click()
    for label, value in fields.items():
        page.locator(f"#{label}").fill(value)
    page.get_by_role("button", name="Record the complaint").click()


def test_a_complaint_is_refused_with_its_input_then_recorded_and_closed(asha: Moderator, desk: Desk) -> None:
    asha.page.set_viewport_size({"width": 360, "height": 760})
    page = asha.go(f"/story/{COPY}")
    given = {"complainant": PERSON, "contact": CONTACT, "statement": STATEMENT}
    fill_complaint(page, **given, copied="99")
    expect(page.get_by_role("alert")).to_contain_text("The original is not on record")
    asha.expect_status(400)
    expect(page.get_by_label("Note")).to_have_value(STATEMENT)
    shows_well(asha, "complaint-refused")
    page.get_by_label("Id of the story that was copied").fill(str(ORIGINAL))
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Complaint 1")
    expect(page.get_by_text("Compared with the original")).to_be_visible()
    page.get_by_role("button", name="Author’s answer").click()
    expect(page.get_by_role("alert")).to_contain_text("Say what was answered")
    asha.expect_status(400)
    page.get_by_label("Note").fill("मैंने लिखी")
    page.get_by_role("button", name="Send again").click()
    shows_well(asha, "complaint")
    page.get_by_label("Note or answer").fill("taken down")
    page.get_by_role("button", name="Close: upheld").click()
    expect(page.get_by_role("status")).to_contain_text("upheld")
    asha.go("/complaints?closed=1").get_by_role("link", name="Complaint 1").click()
    expect(page.get_by_text("मैंने लिखी")).to_be_visible()
    with closing(read(desk.neardup.ledger)) as db:
        found = complaints.read_complaint(db, 1)
    assert found is not None and found.outcome == "upheld"
    assert [step.step for step in found.log] == ["received", "evidence_made", "author_answered", "closed"]


def test_a_complaint_about_an_unknown_story_has_no_form_and_no_page(asha: Moderator) -> None:
    for path, said in (("/story/99", "Not Found"), ("/complaint/99", "no complaint with this number")):
        expect(asha.go(path).locator("main")).to_contain_text(said)
        asha.expect_status(404)


def test_no_one_permits_the_use_of_anothers_text(asha: Moderator, desk: Desk) -> None:
    page = asha.go("/permissions")
    for granted_by, granted_to, said in (
        ("copier", "copier", f"story {ORIGINAL} is by author asha, so author copier cannot permit its use"),
        ("asha", "asha", "author asha needs no permission for their own texts"),
    ):
        page.get_by_label("Author who permits it").fill(granted_by)
        page.get_by_label("Only this story").fill(str(ORIGINAL))
        page.get_by_label("To author").fill(granted_to)
        page.get_by_label("Note").fill("by mail")
        page.get_by_role("button", name="Enter the permission").click()
        expect(page.get_by_role("alert")).to_contain_text(said)
        asha.expect_status(400)
        expect(page.get_by_label("Only this story")).to_have_value(str(ORIGINAL))
        expect(page.get_by_label("Note")).to_have_value("by mail")
    shows_well(asha, "permission-refused")
    with closing(read(desk.neardup.ledger)) as db:
        assert db.execute("SELECT count(*) FROM permissions").fetchone() == (0,)


def test_an_account_that_comes_back_leads_to_the_earlier_one(asha: Moderator) -> None:
    page = asha.go("/authors")
    expect(page.get_by_text("Accounts that may have come back")).to_be_visible()
    shows_well(asha, "returned-accounts")
    page.get_by_role("link", name="new", exact=True).first.click()
    expect(page.get_by_text("Earlier accounts")).to_be_visible()
    page.locator("section", has_text="Earlier accounts").get_by_role("link", name="copier").first.click()
    expect(page.locator("h1")).to_have_text("Author copier")
    expect(page.get_by_text("Later accounts")).to_be_visible()
    expect(asha.go(f"/case/{RETURNED}").get_by_text("a text that was removed from author")).to_be_visible()


def test_a_proof_is_downloaded_and_one_that_was_changed_is_refused(asha: Moderator, desk: Desk, tmp_path: Path) -> None:
    page = asha.go(f"/story/{COPY}")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="signed proof").click()
    downloading.value.save_as(proof := tmp_path / "proof.json")
    key = str(desk.neardup.folder / "proof.key.pub")
    verified = desk.neardup("verify-proof", str(proof), "--key", key)
    assert verified.code == 0, verified.err
    proof.write_text(proof.read_text().replace(f'"{COPY}"', f'"{ORIGINAL}"'))
    refused = desk.neardup("verify-proof", str(proof), "--key", key)
    assert refused.code == 1 and "is not in the log" in refused.err and len(refused.err.splitlines()) == 1
