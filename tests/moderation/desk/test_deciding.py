"""Laws of the desk's forms: input is never lost, even if a form is rejected; a moderator never overwrites or undoes a
verdict without having seen it.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from neardup.ledger import connect, flags, verdicts
from neardup.moderation.desk import parts
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, verify_pending
from tests.support.desk_client import Client, get, hidden_fields, named_client, origin, send

PAIR, CASE = "/pair/1/2", "/case/1"
NOTE = "टिप्पणी <b>&"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger of three copies of one story, all flagged, and a pair of another story; their pages do not exist."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n in (1, 2, 3):
            commit(db, fingerprinted(n, 7), pairs=[(other, n) for other in range(1, n)])
        commit(db, fingerprinted(8, 9), fingerprinted(9, 9), pairs=[(8, 9)])
        verify_pending(db)
        yield db


async def form_on(client: Client, path: str, **values: str) -> dict[str, str]:
    """The verdict form of a page, filled in with these values."""
    return hidden_fields((await get(client, path))[1]) | values


def verdicts_on(db: sqlite3.Connection, a: int = 1, b: int = 2) -> list[tuple[str, str, str]]:
    return [(row["verdict"], row["note"], row["moderator"]) for row in verdicts.list_of_pair(db, a, b)]


def decide_as_ravi(db: sqlite3.Connection, *pair: int) -> int:
    db.execute("DELETE FROM leases")  # as if they had ended
    flag = flags.read_pair(db, *pair)
    assert flag is not None
    ids = [flag["flag_id"]]
    return verdicts.decide(db, ids, Verdict.QUOTATION, "by the poet", "Ravi", verdicts.identify_state(db, ids))


async def test_verdict_is_stored_with_its_note(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        form = await form_on(client, f"{PAIR}?kind=exact&at=0", verdict="template", note=f"  {NOTE}\r\nline 2 ")
        status, target, _ = await send(client, f"{PAIR}/verdict", form)
    assert (status, target) == (303, "/pair/1/3?kind=exact&at=0&done=1")
    assert verdicts_on(ledger) == [("template", f"{NOTE}\nline 2", "Asha")]


async def test_saved_notes_are_offered_in_the_language_of_the_desk(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    saved = {"en": ("Word for word <b>", "By the poet"), "hi": ("शब्दशः",)}
    async with named_client(tmp_path, notes=saved) as client:
        for language, path, offered in (("en", PAIR, saved["en"]), ("hi", CASE, saved["hi"]), ("hi", "/", saved["hi"])):
            async with client.get(path, headers={"Accept-Language": language}) as answer:
                page = await answer.text()
            assert tuple(map(unescape, re.findall(r"<option>(.*?)</option>", page))) == offered and "<b>" not in page
        form = await form_on(client, PAIR, verdict="template", saved="Word for word <b>", note=NOTE)
        assert (await send(client, f"{PAIR}/verdict", form))[0] == 303
    assert verdicts_on(ledger)[0][1] == f"Word for word <b>\n{NOTE}"


async def test_pairs_of_a_case_are_walked_through_to_the_case(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    decide_as_ravi(ledger, 1, 3)
    async with named_client(tmp_path) as client:
        form = await form_on(client, "/pair/2/3?sort=date&at=1", verdict="template")
        status, target, _ = await send(client, "/pair/2/3/verdict", form)
        assert (status, target) == (303, "/pair/1/2?sort=date&at=1&done=2"), "not the pair without a verdict"
        form = await form_on(client, target, verdict="template")
        status, target, _ = await send(client, f"{PAIR}/verdict", form)
        assert (status, target) == (303, f"{CASE}?sort=date&at=1&done=3"), "the last pair does not lead to its case"
    assert verdicts_on(ledger, 1, 3)[0][0] == "quotation", "a verdict was replaced unasked"


async def test_locked_ledger_loses_no_input(
    tmp_path: Path, ledger: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BUSY_MS", 50)
    async with named_client(tmp_path) as client:
        form = await form_on(client, PAIR, verdict="template", note=NOTE)
        ledger.execute("BEGIN IMMEDIATE")
        async with client.get(PAIR) as answer:
            assert answer.status == 200, "reading waits for the writer of a run"
        async with client.post(f"{PAIR}/verdict", data=form, headers=origin(client)) as answer:
            page = unescape(await answer.text())
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert "Nothing was stored yet" in page
        assert f"{NOTE}</textarea>" in page
        assert 'name="verdict" value="template"' in page
        ledger.execute("ROLLBACK")
        assert verdicts_on(ledger) == []
        assert (await send(client, f"{PAIR}/verdict", form))[0] == 303
    assert verdicts_on(ledger) == [("template", NOTE, "Asha")]


async def test_conflict_shows_the_other_verdict_and_keeps_the_note(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        form = await form_on(client, f"{PAIR}?at=0", verdict="template", note=NOTE)
        decide_as_ravi(ledger, 1, 2)
        status, _, page = await send(client, f"{PAIR}/verdict", form)
        assert status == 409
        for expected in ("Ravi", "quotation", "by the poet", f"{NOTE}</textarea>"):
            assert expected in page
        assert [row[0] for row in verdicts_on(ledger)] == ["quotation"], "the first verdict was overwritten"
        status, target, _ = await send(
            client, f"{PAIR}/verdict", hidden_fields(page) | {"verdict": "template", "note": NOTE}
        )
        assert (status, target[:5]) == (303, "/pair")
    assert [row[0] for row in verdicts_on(ledger)] == ["template", "quotation"]


async def test_case_is_decided_only_as_it_was_seen(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        form = await form_on(client, f"{CASE}?language=HINDI", verdict="template", note=NOTE)
        decide_as_ravi(ledger, 2, 3)
        status, _, page = await send(client, f"{CASE}/verdict", form)
        assert (status, f"{NOTE}</textarea>" in page) == (409, True)
        assert verdicts_on(ledger) == []
        form = hidden_fields(page) | {"verdict": "template", "note": NOTE}
        commit(ledger, fingerprinted(4, 7), pairs=[(1, 4)])
        verify_pending(ledger)
        status, _, page = await send(client, f"{CASE}/verdict", form)
        assert (status, verdicts_on(ledger)) == (409, []), "the verdict covers a story that was not on the page"
        status, target, _ = await send(client, f"{CASE}/verdict", hidden_fields(page) | {"verdict": "template"})
        assert (status, target) == (303, "/?language=HINDI&done=2")
    assert {verdicts_on(ledger, *pair)[0][0] for pair in ((1, 2), (1, 3), (1, 4))} == {"template"}
    assert verdicts_on(ledger, 2, 3)[0][0] == "quotation", "a verdict was replaced unasked"
    assert verdicts_on(ledger, 8, 9) == [], "the verdict covers another case"


async def test_verdict_of_another_moderator_is_not_undone_unseen(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    done = decide_as_ravi(ledger, 1, 2)
    async with named_client(tmp_path) as client:
        undo = hidden_fields((await get(client, f"/?done={done}"))[1], "done")
        form = await form_on(client, PAIR, verdict="template")
        assert (await send(client, f"{PAIR}/verdict", form))[0] == 303
        status, _, page = await send(client, f"/undo/{done}", undo)
        assert (status, "Nothing was changed" in page) == (409, True)
        assert [row[0] for row in verdicts_on(ledger)] == ["template", "quotation"]
        assert (await send(client, "/undo/999", undo))[0] == 404
        assert (await send(client, "/undo/x", undo))[0] in (400, 404)


async def test_last_decisions_are_undone_from_their_list(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        assert "You have decided nothing yet" in (await get(client, "/decisions"))[1]
        for path in (CASE, "/case/8"):
            form = await form_on(client, path, verdict="template", note=NOTE)
            assert (await send(client, f"{path}/verdict", form))[0] == 303
        _, page = await get(client, "/decisions")
        undo = re.findall(r'action="(/undo/\d+)"', page)
        assert undo == ["/undo/4", "/undo/1"], "the latest is at the top"
        form = {"token": form["token"], "back": "/decisions"}
        decide_as_ravi(ledger, 1, 2)
        _, page = await get(client, "/decisions")
        assert "<bdi>Ravi</bdi> built upon it: quotation" in page
        assert re.findall(r'action="(/undo/\d+)"', page) == undo[:1]
        seen = verdicts.identify_state(ledger, verdicts.list_flags(ledger, 1))
        status, _, answer = await send(client, undo[1], form | {"seen": seen})
        assert (status, "Ravi judged quotation: stories 1 and 2; undo that before" in answer) == (409, True)
        seen = verdicts.identify_state(ledger, verdicts.list_flags(ledger, 4))
        status, target, _ = await send(client, undo[0], form | {"seen": seen})
        assert (status, target) == (303, "/decisions")
        assert "undone by <bdi>Asha</bdi>" in (await get(client, "/decisions"))[1]
    assert [row["undone_by"] for row in verdicts.list_of_pair(ledger, 8, 9)] == ["Asha"]
    assert verdicts_on(ledger)[0][0] == "quotation"


async def test_rejected_forms_keep_their_input(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    long = "क" * 2001
    async with named_client(tmp_path) as client:
        form = await form_on(client, PAIR, verdict="template", note=NOTE)
        status, _, page = await send(client, f"{PAIR}/verdict", form | {"note": long})
        assert (status, f"{long}</textarea>" in page) == (400, True)
        assert (await send(client, f"{PAIR}/verdict", form | {"verdict": "nonsense"}))[0] == 400
        assert (await send(client, f"{PAIR}/verdict", form | {"query": "?language=klingon"}))[0] == 400
        assert (await send(client, "/pair/1/9/verdict", form))[0] == 409, "a pair without a flag was decided"
        assert (await send(client, "/case/77/verdict", form))[0] == 409
        client.session.cookie_jar.clear(lambda cookie: cookie.key == "neardup_name")
        status, _, page = await send(client, f"{PAIR}/verdict", form)
        assert (status, f"{NOTE}</textarea>" in page) == (403, True), "a form without a name is not shown again"
    assert verdicts_on(ledger) == []


async def test_pair_is_shown_although_the_store_fails(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        status, page = await get(client, PAIR)
    assert status == 200
    assert page.count("Text not available") == 2
    assert 'class="judge"' in page


async def test_new_flag_is_shown_with_a_verdict_beside_it(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    flag = flags.read_pair(ledger, 1, 2)
    assert flag is not None
    ids = [flag["flag_id"]]
    verdicts.decide(ledger, ids, Verdict.TEMPLATE, "a <prayer>", "Ravi", verdicts.identify_state(ledger, ids))
    commit(ledger, fingerprinted(4, 7), pairs=[(1, 4)])
    verify_pending(ledger)
    async with named_client(tmp_path) as client:
        assert "matches a story with the verdict template" in (await get(client, CASE))[1]
        async with client.get("/pair/1/4") as answer:
            page = await answer.text()
    notice = page.partition('class="notice"')[2].partition("</p>")[0]
    for expected in ("template", "Ravi", "a &lt;prayer&gt;"):
        assert expected in notice
