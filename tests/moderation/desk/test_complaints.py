"""Laws of complaints at the desk: a moderator records one and is led through it, each step is shown with who did it, a
verdict on its pairs closes it, and a refused form loses nothing.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import complaints, connect
from neardup.ledger.complaints import Complaint
from neardup.moderation.desk.moderators import NAME_COOKIE, Moderator, Right, add_moderator
from neardup.records import Verdict

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import LOOPBACK, Client, desk, form_token, get, named_client, prose, send, sign_in
from tests.support.languages import HINDI
from tests.support.verdicts import CONTACT, PERSON, STATEMENT, decide_case, give_verdict, put_complaint

STORY, ORIGINAL = 101, 100
TEXT = prose(1, 200).split()
FIELDS = {"complainant": PERSON, "contact": CONTACT, "note": STATEMENT}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger in which STORY copies the first half of ORIGINAL."""
    with closing(connect(tmp_path / "neardup.db")) as opened:
        words = [*TEXT[:100], *prose(2, 100).split()]
        source = CopiedFrom(TEXT, [(0, 0, 100)], title="मूल कहानी")
        write_copying_story(tmp_path, opened, STORY, HINDI, words, [source], title="नक़ल")
        yield opened


def complaint_of(db: sqlite3.Connection, number: int = 1) -> Complaint:
    found = complaints.read_complaint(db, number)
    assert found is not None
    return found


async def post(client: Client, path: str, **fields: str) -> tuple[int, str, str]:
    return await send(client, path, {"token": await form_token(client), **fields})


async def test_a_complaint_is_recorded_compared_answered_and_closed(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        status, target, _ = await post(client, f"/story/{STORY}/complaint", **FIELDS, copied=str(ORIGINAL))
        assert (status, target) == (303, "/complaint/1")
        page = (await get(client, target))[1]
        for words in (
            PERSON,
            CONTACT,
            STATEMENT,
            "मूल कहानी",
            "due ",
            "Compared with the original",
            f"Story {ORIGINAL}",
        ):
            assert words in page, words
        for action, note in (
            ("acknowledged", ""),
            ("author_asked", "by mail"),
            ("author", "मेरी है"),
            ("upheld", "taken down"),
        ):
            assert (await post(client, target, action=action, note=note))[0] == 303, action
        logged = [(step.step, step.by, step.note) for step in complaint_of(db).log]
        assert logged == [
            ("received", "Asha", ""), ("evidence_made", None, ""), ("acknowledged", "Asha", ""),
            ("author_asked", "Asha", "by mail"), ("author_answered", "Asha", "मेरी है"), ("closed", "Asha", "taken down"),
        ]  # fmt: skip
        status, _, page = await post(client, target, action="author", note="too late")
        assert status == 409 and "too late" in page, "the words of a refused form are lost"
        assert (await post(client, target, action="reopen", note="new facts"))[0] == 303
        assert complaint_of(db).is_open
        assert (await post(client, target, action="forget"))[0] == 303
        page = (await get(client, target))[1]
        assert PERSON not in page and CONTACT not in page and STATEMENT not in page


async def test_without_an_original_the_story_is_checked_against_all(tmp_path: Path, db: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        assert (await post(client, f"/story/{STORY}/complaint", **FIELDS))[0] == 303
        evidence = complaint_of(db).evidence
        assert evidence is not None, complaint_of(db).log
        assert (evidence["compared_with"], evidence["compared"]) == ("all", 1)
        assert "Compared with all stories on record: 1" in (await get(client, "/complaint/1"))[1]


async def test_a_given_text_is_shown_whole_and_forgotten_with_its_complainant(
    tmp_path: Path, db: sqlite3.Connection
) -> None:
    text = " ".join(TEXT)
    async with named_client(tmp_path) as client:
        await post(client, f"/story/{STORY}/complaint", **FIELDS, copied_text=text)
        evidence = complaint_of(db).evidence
        assert evidence is not None and evidence["passages"]
        assert text in (await get(client, "/complaint/1"))[1]
        assert (await post(client, "/complaint/1", action="forget"))[0] == 303
        page = (await get(client, "/complaint/1"))[1]
        assert " ".join(TEXT[:12]) not in page and "a text that the complainant gave" in page
        assert (await post(client, "/complaint/1", action="evidence"))[0] == 303
    complaints.put_evidence(db, 1, evidence)  # which was being made while the complainant was forgotten
    forgotten = complaint_of(db)
    assert forgotten.evidence == evidence | {"passages": []}
    assert forgotten.log[-1].note == "the text of the original was forgotten with the complainant"
    give_verdict(db, [(ORIGINAL, STORY)], Verdict.TEMPLATE)
    assert complaint_of(db).is_open, "what was compared with a text is no pair on record"


async def test_a_text_that_cannot_be_read_is_said_and_compared_again(tmp_path: Path, db: sqlite3.Connection) -> None:
    page = tmp_path / f"{ORIGINAL}.html"
    content = page.read_bytes()
    page.unlink()
    async with named_client(tmp_path) as client:
        await post(client, f"/story/{STORY}/complaint", **FIELDS, copied=str(ORIGINAL))
        assert [step.step for step in complaint_of(db).log] == ["received", "evidence_failed"]
        assert "could not be compared" in (await get(client, "/complaint/1"))[1]
        page.write_bytes(content)
        assert (await post(client, "/complaint/1", action="evidence"))[0] == 303
        assert complaint_of(db).evidence is not None


async def test_a_case_shows_its_complaints_and_its_verdict_closes_them(tmp_path: Path, db: sqlite3.Connection) -> None:
    put_complaint(db, STORY, ORIGINAL, days=-1)
    put_complaint(db, ORIGINAL, None)
    async with named_client(tmp_path) as client:
        listed = (await get(client, "/complaints"))[1]
        assert re.findall(r'href="/complaint/(\d)"', listed) == ["1", "2"], "the next deadline is not at the top"
        assert "overdue" in listed
        for wanted, found in (("open", 1), ("overdue", 1)):
            listed = (await get(client, f"/?complaint={wanted}"))[1]
            assert listed.count('class="row"') == found and 'href="/?complaint=overdue"' in listed, wanted
        db.execute("UPDATE complaints SET due_at = ?", (2**42,))
        assert "No cases here" in (await get(client, "/?complaint=overdue"))[1]
        for path in (f"/case/{STORY}", f"/story/{STORY}"):
            assert STATEMENT in (await get(client, path))[1], path
        decide_case(db, STORY, Verdict.PLAGIARISM)
        assert "No complaint is open." in (await get(client, "/complaints"))[1]
        assert (await get(client, "/complaints?closed=1"))[1].count("<strong>plagiarism") == 2
        give_verdict(db, [(ORIGINAL, STORY)], Verdict.REOPENED)
        assert complaints.count(db) == 2, "the case is open again, and its complaints are closed"


async def test_a_wrong_form_is_refused_with_its_input(tmp_path: Path, db: sqlite3.Connection) -> None:
    put_complaint(db, STORY, ORIGINAL)
    async with named_client(tmp_path) as client:
        for wrong, words in (
            ({"copied": str(ORIGINAL)}, "complaint 1 again"),
            ({"copied": str(STORY)}, "its own original"),
            ({"copied": "a" * 5_000}, "not recorded"),
            ({"copied": "99"}, "the original is not on record"),
            ({"complainant": " "}, "complainant: is empty"),
            ({"copied": "5", "copied_text": "x"}, "either its id or its text"),
            ({"copied_text": "दो शब्द"}, "the text of the original"),
        ):
            status, _, page = await post(client, f"/story/{STORY}/complaint", **FIELDS | wrong)
            assert status == 400 and words.lower() in page.lower(), page
            assert STATEMENT in page
            for name, value in (FIELDS | wrong).items():
                assert f"{value.strip()}</textarea>" in page, f"{name} cannot be mended"
        for fields, expected in (
            ({"action": "upheld"}, 400),
            ({"action": "x"}, 400),
            ({"action": "author", "note": "x" * 3_000}, 400),
        ):
            assert (await post(client, "/complaint/1", **fields))[0] == expected
        assert (await post(client, "/complaint/9", action="acknowledged"))[0] == 404
        assert (await get(client, "/complaint/x"))[0] == 400
        form = {"token": await form_token(client)} | FIELDS | {"copied": "99"}
        client.session.cookie_jar.clear(lambda cookie: cookie.key == NAME_COOKIE)
        status, _, page = await send(client, f"/story/{STORY}/complaint", form)
        assert status == 403 and all(value in page for value in FIELDS.values()), "a form without a name is lost"
    assert [step.step for step in complaint_of(db).log] == ["received", "acknowledged", "evidence_made"]
    assert complaints.count(db) == 1


async def test_who_may_only_read_cannot_record_or_close(tmp_path: Path, db: sqlite3.Connection) -> None:
    put_complaint(db, STORY, ORIGINAL)
    path = tmp_path / "moderators.toml"
    secret = add_moderator(path, Moderator("Kamala", "", frozenset({Right.READ}), ()))
    async with desk(tmp_path, LOOPBACK, "", path) as client:
        await sign_in(client, secret)
        for address, fields in ((f"/story/{STORY}/complaint", FIELDS), ("/complaint/1", {"action": "acknowledged"})):
            assert (await post(client, address, **fields))[0] == 403, address
        assert "Record a complaint" not in (await get(client, f"/story/{STORY}"))[1]
    assert complaints.count(db) == 1
