"""Laws of the review desk: only this machine sees a page, unless there is a token; no other site can post a form;
no response lets a browser run or embed foreign content; and neither input nor stories are logged.
"""

import re
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.ledger import connect
from neardup.moderation.desk.moderators import (
    MAX_NAME_LENGTH,
    Keys,
    choose_local_path,
    clean_name,
    clean_note,
    is_form_token,
    make_form_token,
)
from neardup.moderation.desk.security import MAX_BODY_BYTES

from tests.support.desk_client import TOKEN, desk, form_token, origin, post

KEPT = "max-age=31536000, immutable"


async def test_every_response_has_security_headers(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        async with client.get("/name") as answer:
            addresses = re.findall(r'"(/static/[^"]+)"', await answer.text())
        assert len(addresses) >= 5
        for path, status in (("/name", 200), ("/nowhere", 404), ("/login", 200), *((name, 200) for name in addresses)):
            async with client.get(path) as answer:
                headers = answer.headers
                assert answer.status == status, path
            policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
            assert policy == {
                "default-src": "'none'", "style-src": "'self'", "script-src": "'self'", "img-src": "'self'",
                "form-action": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
            }, path  # fmt: skip
            assert headers["X-Content-Type-Options"] == "nosniff", path
            assert headers["Referrer-Policy"] == "same-origin", path
            assert headers["Cache-Control"] == (KEPT if path in addresses else "no-store"), path
            assert "aiohttp" not in headers["Server"], path


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "localhost:99", "[::1]:99"])
async def test_loopback_host_names_are_accepted(tmp_path: Path, name: str) -> None:
    async with desk(tmp_path) as client, client.get("/name", headers={"Host": name}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "10.0.0.1", "[::"])
async def test_other_host_names_are_rejected(tmp_path: Path, name: str) -> None:
    async with desk(tmp_path) as client, client.get("/name", headers={"Host": name}) as answer:
        assert answer.status in (400, 421), "DNS rebinding"
        assert "Your name" not in await answer.text()


async def test_only_forms_of_this_desk_are_accepted(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        here = origin(client)
        asha = {"name": "Asha"}
        assert await post(client, "/name", asha) == 303
        assert await post(client, "/name", asha, here | {"Sec-Fetch-Site": "same-origin"}) == 303
        for headers in (
            {"Origin": "null"},
            {"Origin": "http://evil.example"},
            {"Origin": f"http://{client.host}:{(client.port or 0) + 1}"},
            {"Referer": here["Origin"]},
            here | {"Sec-Fetch-Site": "cross-site"},
            here | {"Sec-Fetch-Site": "same-site"},
            here | {"Sec-Fetch-Site": "none"},
        ):
            assert await post(client, "/name", asha, headers) == 403, headers
        for token in ("", "0" * 64, "ü"):
            assert await post(client, "/name", asha | {"token": token}) == 403, "CSRF"


async def test_form_token_belongs_to_one_session(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        old_token = await form_token(client)
        assert old_token == await form_token(client), "the token of a session changed"
        client.session.cookie_jar.clear()
        assert await post(client, "/name", {"name": "Asha", "token": old_token}) == 403


async def test_form_from_before_a_restart_is_shown_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        await form_token(client)
        form = {"token": "0" * 64, "back": "/pair/1/2", "note": "<b>कहानी</b> & more", "secret": TOKEN}
        async with client.post("/name", data=form, headers=origin(client)) as answer:
            text = await answer.text()
        assert answer.status == 403
        assert "&lt;b&gt;कहानी&lt;/b&gt; &amp; more</textarea>" in text
        assert 'name="back" value="/pair/1/2"' in text
        assert TOKEN not in text, "a secret is not shown"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"x" * (MAX_BODY_BYTES + 1), "application/x-www-form-urlencoded", 413),
        (b"name=Asha", "text/plain", 415),
        (b"name=Asha", "multipart/form-data; boundary=x", 415),
        (b"name=\xff", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 101, "application/x-www-form-urlencoded", 400),
        (b"name=%ff%00", "application/x-www-form-urlencoded; charset=nonsense", 403),
        (b"", "application/x-www-form-urlencoded", 403),
    ],
)
async def test_malformed_forms_are_rejected(tmp_path: Path, body: bytes, kind: str, status: int) -> None:
    async with desk(tmp_path) as client:
        await form_token(client)
        async with client.post("/name", data=body, headers=origin(client) | {"Content-Type": kind}) as answer:
            assert answer.status == status


async def test_other_methods_are_rejected(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            async with client.request(method, "/name") as answer:
                assert answer.status in (403, 405), method


async def test_link_from_another_site_does_not_replace_the_session(tmp_path: Path) -> None:
    async with desk(tmp_path) as client, client.get("/name", headers={"Sec-Fetch-Site": "cross-site"}) as answer:
        assert 'http-equiv="refresh" content="0;url=/name"' in await answer.text()
        assert "neardup_session" not in answer.cookies


@given(st.text(), st.text(), st.text())
def test_only_the_key_makes_a_form_token(session: str, other: str, text: str) -> None:
    keys = Keys.of("")
    made = make_form_token(keys, session)
    assert is_form_token(keys, session, made)
    assert is_form_token(keys, other, made) == (session == other)
    assert not is_form_token(Keys.of(""), session, made), "two processes share a key"
    assert is_form_token(keys, session, text) == (text == made)


@given(st.text())
def test_name_is_one_visible_line(typed: str) -> None:
    name = clean_name(typed)
    assert clean_name(name) == name
    assert len(name) <= MAX_NAME_LENGTH
    assert not set(name) & set("\n\r\t\0\u202e\u2066\ud800")


@given(st.text())
def test_note_keeps_lines_and_loses_invisible_characters(typed: str) -> None:
    note = clean_note(typed)
    assert clean_note(note) == note
    assert not set(note) & set("\r\0\x1b\u202e\u2066\ud800")


def test_names_and_notes_keep_every_script() -> None:
    for name in ("आशा", "ആശ\u200d", "O'Neil", "ਗੁਰਪ੍ਰੀਤ", "ক্\u200cষ"):
        assert clean_name(f"  {name}\n") == clean_note(f" {name} \r\n") == name
    assert clean_note("a\r\nb\rc") == "a\nb\nc"


@pytest.mark.parametrize(
    "address", ["//evil.example", "/\\evil.example", "http://x", "", "javascript:x", "/a b", "/\t/x"]
)
def test_addresses_elsewhere_are_replaced(address: str) -> None:
    assert choose_local_path(address) == "/"


def test_addresses_of_the_desk_are_kept() -> None:
    for address in ("/", "/pair/1/2?language=HINDI&at=3", "/case/7"):
        assert choose_local_path(address) == address


async def test_only_failures_are_logged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with desk(tmp_path) as client:
        async with client.get("/search?q=SECRET"), client.get("/login?back=/SECRET"), client.get("/SECRET"):
            pass
        await post(client, "/name", {"name": "SECRET"})
        await post(client, "/login", {"secret": "SECRET"})
    logged = "".join(capfd.readouterr())
    assert "a login was refused" in logged
    assert "SECRET" not in logged


async def test_desk_closes_the_ledger(tmp_path: Path) -> None:
    async with desk(tmp_path):
        pass
    with closing(connect(tmp_path / "neardup.db")) as db:
        [mode] = db.execute("PRAGMA journal_mode = DELETE").fetchone()
    assert mode == "delete", "a connection was left open"


async def test_style_sheets_are_served_as_css(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        for name in ("review.css", "desk.css", "fonts.css"):
            async with client.get(f"/static/{name}") as answer:
                assert (answer.status, answer.content_type) == (200, "text/css"), name
        async with client.get("/static/" + 300 * "x") as answer:
            assert answer.status == 404, "the name is too long for a file"
