"""Laws of the login: only a client with the token sees a page; wrong tokens are limited by address; a login starts
a new session, and logging out ends it; behind TLS no cookie travels in the clear.
"""

import re
from http.cookies import Morsel
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.errors import Misuse
from neardup.http.tokens import digest_of
from neardup.moderation.desk import sessions
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.sessions import FREE_ATTEMPTS, LOG_EVERY_SECONDS, LONGEST_WAIT_SECONDS, Keys, LoginLimit

from tests.support.desk_client import LOOPBACK, OPEN, TOKEN, Client, desk, form_token, origin

WRONG = "not the token of the desk"
HTTPS = {"X-Forwarded-Proto": "https"}


async def log_in(client: Client, secret: str, **headers: str) -> tuple[int, dict[str, Morsel[str]]]:
    """Send the login form; returns the status and the cookies of the response."""
    form = {"token": await form_token(client, "/login"), "secret": secret, "back": "/name"}
    async with client.post("/login", data=form, headers=origin(client) | headers, allow_redirects=False) as answer:
        assert ("Retry-After" in answer.headers) == (answer.status == 429)
        return answer.status, dict(answer.cookies)


@pytest.mark.parametrize("listen", [OPEN, LOOPBACK])
async def test_a_desk_with_a_token_requires_it(tmp_path: Path, listen: str) -> None:
    async with desk(tmp_path, listen, TOKEN) as client:
        for path in ("/", "/name", "/pair/1/2", "/case/1", "/story/1", "/search?q=x", "/nowhere"):
            async with client.get(path, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"][:12]) == (303, "/login?back="), path
        async with client.get("/static/icon.svg") as answer:
            assert answer.status == 200
        token = await form_token(client, "/login")
        for secret in ("", TOKEN[:-1], TOKEN + "x", "ü"):
            form = {"token": token, "secret": secret}
            async with client.post("/login", data=form, headers=origin(client)) as answer:
                assert (answer.status, "neardup_login" in answer.cookies) == (403, False), secret
        form = {"token": token, "secret": TOKEN, "back": "/name"}
        async with client.post("/login", data=form, headers=origin(client), allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/name")
            cookie = answer.cookies["neardup_login"]
            assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")
            assert TOKEN not in cookie.value
        async with client.get("/name", allow_redirects=False) as answer:
            assert answer.status == 200


async def test_form_without_a_login_is_rejected(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        token = await form_token(client, "/login")
        form = {"token": token, "name": "Asha"}
        async with client.post("/name", data=form, headers=origin(client), allow_redirects=False) as answer:
            assert (answer.status, "neardup_name" in answer.cookies) == (403, False)


@pytest.mark.parametrize("listen", ["0.0.0.0:8765", "[::]:8765", "192.168.1.2:80", "example.org:80", "127.0.0.1.x:80"])
async def test_open_address_requires_a_configured_token(tmp_path: Path, listen: str) -> None:
    with pytest.raises(Misuse, match=rf"^review\.token: {re.escape(listen)} .* NEARDUP_REVIEW__TOKEN$"):
        async with desk(tmp_path, listen):
            pass


@given(st.text(), st.text(min_size=1), st.text(), st.integers(0, 10**10))
def test_only_the_key_makes_a_login(session: str, token: str, name: str, now: int) -> None:
    keys, asha = Keys.of(token), Moderator(name, digest_of(token))
    known = [Moderator(name + "x", digest_of(token)), asha]
    with patch("time.time", lambda: now):
        made = sessions.sign_login(keys, session, asha)
        assert sessions.find_login(Keys.of(token), session, made, known) is asha, "a restart ended a login"
        assert not sessions.find_login(keys, session + "x", made, known), "a login is valid for another session"
        assert not sessions.find_login(Keys.of(token + "x"), session, made, known), "a login survived a new token"
        assert not sessions.find_login(keys, session, made[:-1], known), "a truncated signature is accepted"
        assert not sessions.find_login(keys, session, made, known[:1]), "a login survived its moderator"
        renewed = [Moderator(name, digest_of(token + "x"))]
        assert not sessions.find_login(keys, session, made, renewed), "a login survived the moderator's new token"
        assert not sessions.find_login(Keys.of(""), session, made, known), "a desk without a token takes any key"
    with patch("time.time", lambda: now + sessions.LOGIN_SECONDS + 1):
        assert not sessions.find_login(keys, session, made, known), "a login does not expire"
        signed, signed_at, signature = made.rsplit(".", 2)
        with patch("time.time", lambda: now + 100):
            later = sessions.sign_login(keys, session, asha).rsplit(".", 2)[1]
        assert signed_at != later
        assert not sessions.find_login(keys, session, f"{signed}.{later}.{signature}", known), "a login was forged"


async def test_wrong_tokens_are_limited_by_address(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN, proxies=("127.0.0.1",)) as client:
        first, second = {"X-Forwarded-For": "203.0.113.5"}, {"X-Forwarded-For": "203.0.113.5, 198.51.100.7"}
        statuses = [(await log_in(client, WRONG, **first))[0] for _ in range(FREE_ATTEMPTS + 3)]
        assert statuses == [403] * FREE_ATTEMPTS + [429] * 3
        assert (await log_in(client, TOKEN, **first))[0] == 429, "the right token is recognised during the wait"
        assert (await log_in(client, TOKEN, **second))[0] == 303, "one client locks out another"


async def test_a_client_cannot_invent_the_address_by_which_it_is_limited(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        sent = [{"X-Forwarded-For": f"203.0.113.{n}"} for n in range(FREE_ATTEMPTS + 3)]
        statuses = [(await log_in(client, WRONG, **headers))[0] for headers in sent]
    assert statuses == [403] * FREE_ATTEMPTS + [429] * 3


async def test_a_proxy_leads_nobody_into_a_desk_without_a_token(tmp_path: Path) -> None:
    async with desk(tmp_path) as client, client.get("/name", headers={"X-Forwarded-For": "192.0.2.1"}) as answer:
        assert answer.status == 421


@given(st.lists(st.tuples(st.floats(0, 2000), st.booleans()), max_size=60))
def test_waits_grow_and_end(attempts: list[tuple[float, bool]]) -> None:
    now, failed = 0.0, 0
    limit = LoginLimit(lambda: now)
    for pause, right in attempts:
        now += pause
        wait = limit.wait_seconds("203.0.113.5")
        assert 0 <= wait <= LONGEST_WAIT_SECONDS
        assert wait == 0 or failed >= FREE_ATTEMPTS, "a person who mistypes waits"
        if right and not wait:
            limit.accept("203.0.113.5")
            failed = 0
        else:
            limit.refuse("203.0.113.5", wrong=not wait)
            failed += not wait
        assert limit.wait_seconds("203.0.113.6") == 0
    now += LONGEST_WAIT_SECONDS
    assert limit.wait_seconds("203.0.113.5") == 0


def test_guesses_are_few_however_many_are_sent() -> None:
    now, compared = 0.0, 0
    limit = LoginLimit(lambda: now)
    for second in range(86_400):
        now = float(second)
        address = f"2001:db8::{second % 0xFFFF:x}"
        if not limit.wait_seconds(address):
            limit.refuse(address, wrong=True)
            compared += 1
    assert compared < 120, "a client with a network of addresses guesses faster"


def test_refusals_are_one_line_a_minute(capfd: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    limit = LoginLimit(lambda: now)
    for second in range(3 * int(LOG_EVERY_SECONDS)):
        now = float(second)
        limit.refuse("203.0.113.5", wrong=True)
    logged = re.sub(r"\x1b\[[\d;]*m", "", "".join(capfd.readouterr()))
    assert re.findall(r"a login was refused.*attempts=(\d+)", logged) == ["1", "60", "60"]


async def test_login_and_logout_renew_the_session(tmp_path: Path) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        await form_token(client, "/login")
        url = client.make_url("/")
        before = client.session.cookie_jar.filter_cookies(url)["neardup_session"].value
        status, cookies = await log_in(client, TOKEN)
        assert status == 303
        kept = {name: cookie.value for name, cookie in cookies.items()}
        assert kept["neardup_session"] != before, "who gave the browser its session shares its login"
        page = await form_token(client)
        async with client.post(
            "/logout", data={"token": page}, headers=origin(client), allow_redirects=False
        ) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/login")
            assert answer.cookies["neardup_session"].value != kept["neardup_session"]
        client.session.cookie_jar.update_cookies(kept, url)
        async with client.get("/name", allow_redirects=False) as answer:
            assert answer.status == 303, "a copy of the cookies outlives the logout"


@pytest.mark.parametrize(("headers", "is_secure"), [({}, False), (HTTPS, True), ({"X-Forwarded-Proto": "http"}, False)])
async def test_cookies_are_secure_behind_tls(tmp_path: Path, headers: dict[str, str], is_secure: bool) -> None:
    async with desk(tmp_path, OPEN, TOKEN) as client:
        async with client.get("/login", headers=headers) as answer:
            seen: list[Any] = [answer.cookies["neardup_session"]]
        _, cookies = await log_in(client, TOKEN, **headers)
        seen += [cookies["neardup_session"], cookies["neardup_login"]]
        assert [bool(cookie["secure"]) for cookie in seen] == [is_secure] * 3
