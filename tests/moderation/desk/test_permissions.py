"""Laws of the page of permissions: it says who may use whose text; a refused form changes nothing and comes back."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.errors import Misuse
from neardup.ledger import connect, now_ms, permissions
from neardup.ledger.permissions import Grant, PermissionFilter
from neardup.moderation.desk.moderators import NAME_COOKIE, Moderator, Right, add_moderator
from neardup.moderation.permissions import import_csv

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import desk, form_token, get, hidden_fields, named_client, prose, send, sign_in
from tests.support.languages import HINDI, TAMIL

TEXT = prose(1, 200).split()
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Story 1001 by ravi copies story 1000 by asha."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        write_copying_story(tmp_path, db, 1001, HINDI, TEXT, [CopiedFrom(TEXT, [(0, 0, 200)], "asha")], author="ravi")
        yield db


def status_of(db: sqlite3.Connection) -> str:
    return str(db.execute("SELECT status FROM flags").fetchone()[0])


async def test_a_copy_is_permitted_from_its_pair_and_open_again_once_that_is_revoked(
    tmp_path: Path, ledger: sqlite3.Connection
) -> None:
    async with named_client(tmp_path) as client:
        _, pair = await get(client, "/pair/1000/1001")
        [link] = re.findall(r'<a href="(/permissions\?[^"]*)">This copy is permitted', pair)
        _, page = await get(client, link)
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)" dir', page)) | hidden_fields(page)
        assert (form["granted_by"], form["story_id"], form["granted_to"]) == ("asha", "1000", "ravi")
        entered = await send(client, "/permissions", form | {"licence": HOSTILE, "note": "पत्र"})
        assert entered[:2] == (303, "/permissions?id=1")
        serial = {"token": form["token"], "granted_by": "asha", "serial": HOSTILE}
        assert (await send(client, "/permissions", serial))[:2] == (303, "/permissions?id=2")
        _, page = await get(client, "/permissions")
        assert "by <bdi>Asha</bdi>" in page and "in force" in page
        async with client.get("/permissions?author=ravi") as answer:
            assert "<script>alert" not in await answer.text()
        assert status_of(ledger) == "permitted"
        assert "Permission 1</a> covers this copy" in (await get(client, "/pair/1000/1001"))[1]
        for path, shown in (
            ("/", "No cases here"),
            ("/?status=permitted", "What this story has in common with others is permitted"),
            ("/case/1001", "<strong>permitted</strong>"),
            ("/author/ravi", "1 permitted"),
        ):
            assert shown in (await get(client, path))[1], path
        form = {"token": await form_token(client)}
        assert (await send(client, "/permissions/1/revoke", form))[0] == 303
        assert "revoked by <bdi>Asha</bdi>" in (await get(client, "/permissions"))[1]
        assert status_of(ledger) == "open" and "1 case" in (await get(client, "/"))[1]
        status, _, page = await send(client, "/permissions/1/revoke", form)
        assert status == 400 and "Asha revoked permission 1 before" in page


async def test_a_form_that_is_refused_comes_back_with_its_input(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    async with named_client(tmp_path) as client:
        form = {"token": await form_token(client)}
        for fields, why in (
            ({}, "granted_by, or a catalogue"),
            ({"granted_by": "ravi", "story_id": "1000", "granted_to": "ravi"}, "is by author asha"),
            ({"granted_by": "asha", "story_id": "7"}, "story 7 is not on record"),
            ({"granted_by": "asha", "until": "tomorrow"}, "until: 'tomorrow' is not an RFC 3339 time"),
            ({"granted_by": "asha", "until": "2020-01-01"}, "ended already"),
            ({"granted_by": HOSTILE, "granted_to": HOSTILE}, "needs no permission"),
        ):
            async with client.post("/permissions", data=form | fields, headers={"Origin": ""}) as answer:
                assert answer.status == 403, "a form of another site"
            status, _, page = await send(client, "/permissions", form | fields)
            assert (status, why in page) == (400, True), fields
            assert all(f'value="{value}"' in page for value in fields.values()), "the input is lost"
        client.session.cookie_jar.clear(lambda cookie: cookie.key == NAME_COOKIE)
        status, _, page = await send(client, "/permissions", form | {"granted_by": "asha", "note": "by mail"})
        assert status == 403 and 'value="asha"' in page and "by mail</textarea>" in page, "its input is lost"
        assert not permissions.select(ledger, PermissionFilter(), now_ms())
    file = tmp_path / "moderators.toml"
    for rights, languages in (({Right.READ}, ()), ({Right.DECIDE}, (TAMIL,))):
        file.unlink(missing_ok=True)
        secret = add_moderator(file, Moderator("Kamala", rights=frozenset(rights), languages=languages))
        async with desk(tmp_path, moderators=file) as client:
            await sign_in(client, secret)
            form = {"token": await form_token(client, "/permissions"), "granted_by": "asha", "story_id": "1000"}
            assert (await send(client, "/permissions", form))[0] == 403, "without the right to decide"
    assert status_of(ledger) == "open"
    number = permissions.enter(ledger, Grant("asha"), "Asha")
    async with desk(tmp_path, moderators=file) as client:
        await sign_in(client, secret)
        form = {"token": await form_token(client, "/permissions")}
        assert (await send(client, f"/permissions/{number}/revoke", form))[0] == 403, "in another language"
    assert status_of(ledger) == "permitted"


async def test_the_desk_follows_the_end_of_a_term(tmp_path: Path, ledger: sqlite3.Connection) -> None:
    permissions.enter(ledger, Grant("asha", until=now_ms() + 10**9), "Asha")
    ledger.execute("UPDATE permissions SET until = ?", (now_ms(),))  # as time passes
    async with named_client(tmp_path) as client:
        assert "1 case" in (await get(client, "/"))[1]
        assert "ended" in (await get(client, "/permissions?author=asha"))[1]
    assert status_of(ledger) == "open"


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("granted_by,story_id\nasha,1000\nravi,1000\nasha,soon,\n", "line 3: story 1000 is by author asha"),
        ("granted_by,until\nasha,\nravi,2020-13-01\n", "line 3: until: '2020-13-01' is not"),
        ("granted_by\nasha\nasha\n", "line 3: permission .* says the same"),
        ("granted_by,by\nasha,x\n", "unknown column 'by'"),
        ("licence\nx\n", "the first line names columns"),
        ("", "the first line names columns"),
        ('granted_by\n"asha\n', "no CSV file"),
    ],
)
def test_nothing_is_stored_of_a_file_with_a_wrong_row(
    tmp_path: Path, ledger: sqlite3.Connection, rows: str, why: str
) -> None:
    file = tmp_path / "permissions.csv"
    file.write_text(rows, "utf-8")
    with pytest.raises(Misuse, match=why):
        import_csv(ledger, file, "Asha")
    assert not permissions.select(ledger, PermissionFilter(), now_ms()) and status_of(ledger) == "open"
    file.write_text("\ufeffgranted_by,granted_to,note,serial\nasha,ravi,,\nravi,,पत्र,नदी का घर\n", "utf-8")
    assert import_csv(ledger, file, "Asha") == 2 and status_of(ledger) == "permitted"
    entered = permissions.select(ledger, PermissionFilter(), now_ms())
    assert [row["serial"] for row in entered] == ["नदी का घर", None]
