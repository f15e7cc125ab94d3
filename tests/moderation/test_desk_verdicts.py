"""Laws of the desk's forms: what was typed is never lost, whatever becomes of it; nobody's verdict is written over or
undone unseen.
"""

import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from html import unescape
from pathlib import Path

import pytest
from neardup.ledger import connect, flags, verdicts
from neardup.moderation.desk import connections
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, verify_pending
from tests.support.desk_client import Client, desk, form_token, origin

PAIR, CLUSTER = "/pair/1/2", "/cluster/1"
NOTE = "टिप्पणी <b>&"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Three copies of one story, each pair flagged, and a pair of another; their pages are gone."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for n in (1, 2, 3):
            commit(db, fingerprinted(n, 7), pairs=[(other, n) for other in range(1, n)])
        commit(db, fingerprinted(8, 9), fingerprinted(9, 9), pairs=[(8, 9)])
        verify_pending(db)
        yield db


@asynccontextmanager
async def seated(folder: Path) -> AsyncIterator[Client]:
    async with desk(folder) as client:
        form = {"token": await form_token(client), "name": "Asha"}
        async with client.post("/name", data=form, headers=origin(client), allow_redirects=False) as answer:
            assert answer.status == 303
        yield client


async def form_on(client: Client, path: str, **said: str) -> dict[str, str]:
    """The form to judge by on a page, filled in."""
    async with client.get(path) as answer:
        page = await answer.text()
    return fields(page) | said


def fields(page: str, form_class: str = "judge") -> dict[str, str]:
    form = page.partition(f'class="{form_class}"')[2].partition("</form>")[0]
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)}


async def send(client: Client, path: str, form: dict[str, str]) -> tuple[int, str, str]:
    """The status, where it leads, and the page."""
    async with client.post(path, data=form, headers=origin(client), allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location", ""), unescape(await answer.text())


def judged(db: sqlite3.Connection, a: int = 1, b: int = 2) -> list[tuple[str, str, str]]:
    return [(row["verdict"], row["note"], row["moderator"]) for row in verdicts.of_pair(db, a, b)]


def judge_as_ravi(db: sqlite3.Connection, *pair: int) -> int:
    flag = flags.of_pair(db, *pair)
    assert flag is not None
    ids = [flag["flag_id"]]
    return verdicts.judge(db, ids, Verdict.QUOTATION, "by the poet", "Ravi", verdicts.state(db, ids))


async def test_a_verdict_is_kept_with_its_note(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with seated(tmp_path) as client:
        form = await form_on(client, f"{PAIR}?kind=exact&at=0", verdict="template", note=f"  {NOTE}\r\nline 2 ")
        status, where, _ = await send(client, f"{PAIR}/verdict", form)
    assert (status, where) == (303, "/pair/1/3?kind=exact&at=0&done=1")
    assert judged(ledger) == [("template", f"{NOTE}\nline 2", "Asha")]


async def test_a_locked_ledger_loses_nothing(
    tmp_path: Path, ledger: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 50)
    async with seated(tmp_path) as client:
        form = await form_on(client, PAIR, verdict="template", note=NOTE)
        ledger.execute("BEGIN IMMEDIATE")
        async with client.get(PAIR) as answer:
            assert answer.status == 200, "readers do not wait for the daemon"
        async with client.post(f"{PAIR}/verdict", data=form, headers=origin(client)) as answer:
            page = unescape(await answer.text())
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert "Nothing was stored yet" in page
        assert f"{NOTE}</textarea>" in page
        assert 'name="verdict" value="template"' in page
        ledger.execute("ROLLBACK")
        assert judged(ledger) == []
        assert (await send(client, f"{PAIR}/verdict", form))[0] == 303
    assert judged(ledger) == [("template", NOTE, "Asha")]


async def test_who_was_slower_sees_what_was_decided_and_keeps_the_note(
    tmp_path: Path, ledger: sqlite3.Connection
) -> None:
    async with seated(tmp_path) as client:
        form = await form_on(client, f"{PAIR}?at=0", verdict="template", note=NOTE)
        judge_as_ravi(ledger, 1, 2)
        status, _, page = await send(client, f"{PAIR}/verdict", form)
        assert status == 409
        for said in ("Ravi", "quotation", "by the poet", f"{NOTE}</textarea>"):
            assert said in page
        assert [row[0] for row in judged(ledger)] == ["quotation"], "it stands"
        status, where, _ = await send(client, f"{PAIR}/verdict", fields(page) | {"verdict": "template", "note": NOTE})
        assert (status, where[:5]) == (303, "/pair")
    assert [row[0] for row in judged(ledger)] == ["template", "quotation"]


async def test_a_cluster_is_judged_as_it_was_seen_or_not_at_all(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with seated(tmp_path) as client:
        form = await form_on(client, f"{CLUSTER}?language=HINDI", verdict="template", note=NOTE)
        judge_as_ravi(ledger, 2, 3)
        status, _, page = await send(client, f"{CLUSTER}/verdict", form)
        assert (status, f"{NOTE}</textarea>" in page) == (409, True)
        assert judged(ledger) == []
        form = fields(page) | {"verdict": "template", "note": NOTE}
        commit(ledger, fingerprinted(4, 7), pairs=[(1, 4)])
        verify_pending(ledger)
        status, _, page = await send(client, f"{CLUSTER}/verdict", form)
        assert (status, judged(ledger)) == (409, []), "a story that joined meanwhile was not looked at"
        status, where, _ = await send(client, f"{CLUSTER}/verdict", fields(page) | {"verdict": "template"})
        assert (status, where) == (303, "/?language=HINDI&done=2")
    assert {judged(ledger, *pair)[0][0] for pair in ((1, 2), (1, 3), (2, 3), (1, 4))} == {"template"}
    assert judged(ledger, 8, 9) == [], "another cluster"


async def test_a_verdict_of_another_is_not_undone_unseen(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    done = judge_as_ravi(ledger, 1, 2)
    async with seated(tmp_path) as client:
        async with client.get(f"/?done={done}") as answer:
            page = await answer.text()
        undo = fields(page, "done")
        form = await form_on(client, PAIR, verdict="template")
        assert (await send(client, f"{PAIR}/verdict", form))[0] == 303
        status, _, page = await send(client, f"/undo/{done}", undo)
        assert (status, "Nothing was undone" in page) == (409, True)
        assert [row[0] for row in judged(ledger)] == ["template", "quotation"]
        assert (await send(client, "/undo/999", undo))[0] == 404
        assert (await send(client, "/undo/x", undo))[0] in (400, 404)


async def test_forms_that_are_wrong_keep_what_was_typed(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    long = "क" * 2001
    async with seated(tmp_path) as client:
        form = await form_on(client, PAIR, verdict="template", note=NOTE)
        status, _, page = await send(client, f"{PAIR}/verdict", form | {"note": long})
        assert (status, f"{long}</textarea>" in page) == (400, True)
        assert (await send(client, f"{PAIR}/verdict", form | {"verdict": "nonsense"}))[0] == 400
        assert (await send(client, f"{PAIR}/verdict", form | {"query": "?language=klingon"}))[0] == 400
        assert (await send(client, "/pair/1/9/verdict", form))[0] == 409, "no such flag: nothing was judged"
        assert (await send(client, "/cluster/77/verdict", form))[0] == 409
        client.session.cookie_jar.clear(lambda cookie: cookie.key == "neardup_name")
        status, _, page = await send(client, f"{PAIR}/verdict", form)
        assert (status, f"{NOTE}</textarea>" in page) == (403, True), "a name that was forgotten"
    assert judged(ledger) == []


async def test_a_store_that_fails_is_no_reason_to_show_nothing(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with seated(tmp_path) as client, client.get(PAIR) as answer:
        page = await answer.text()
    assert answer.status == 200
    assert page.count("No text to show") == 2
    assert 'class="judge"' in page


async def test_a_new_flag_is_shown_with_what_was_judged_beside_it(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    flag = flags.of_pair(ledger, 1, 2)
    assert flag is not None
    ids = [flag["flag_id"]]
    verdicts.judge(ledger, ids, Verdict.TEMPLATE, "a <prayer>", "Ravi", verdicts.state(ledger, ids))
    commit(ledger, fingerprinted(4, 7), pairs=[(1, 4)])
    verify_pending(ledger)
    async with seated(tmp_path) as client:
        async with client.get("/") as answer:
            assert "matches a story judged template" in await answer.text()
        async with client.get("/pair/1/4") as answer:
            page = await answer.text()
    notice = page.partition('class="notice"')[2].partition("</p>")[0]
    for said in ("template", "Ravi", "a &lt;prayer&gt;"):
        assert said in notice
