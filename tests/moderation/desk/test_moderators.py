"""Laws of who may open the desk: a moderator's token gives the name, the rights and the languages, and nothing else
does; who may only read, and who does not decide a language, changes nothing.

Only a client with a token sees a page of a desk that has one; wrong tokens are limited by address; a login starts a new
session, and logging out ends it; behind TLS no cookie travels in the clear.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from http.cookies import Morsel
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.tiers import EXACT
from neardup.errors import Misuse
from neardup.http.tokens import digest_of
from neardup.ledger import connect
from neardup.moderation.desk.moderators import (
    FREE_ATTEMPTS,
    LOG_EVERY_SECONDS,
    LOGIN_SECONDS,
    LONGEST_WAIT_SECONDS,
    Keys,
    LoginLimit,
    Moderator,
    NotPermitted,
    Right,
    add_moderator,
    clean_name,
    find_login,
    open_moderators,
    parse_languages,
    parse_rights,
    sign_login,
)
from neardup.records import Language

from tests.support.builders import flag_pair
from tests.support.desk_client import (
    LOOPBACK,
    OPEN,
    TOKEN,
    Client,
    desk,
    form_token,
    get,
    hidden_fields,
    origin,
    send,
    sign_in,
)
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples

WRONG = "not the token of the desk"
HTTPS = {"X-Forwarded-Proto": "https"}
KAMALA = 'കമല . ~ "क" \\'
NAMES = st.text(min_size=1, max_size=60).map(clean_name).filter(bool)
spoken = st.lists(st.sampled_from(LANGUAGES), unique=True, max_size=3).map(tuple)
people = st.dictionaries(NAMES, st.tuples(st.frozensets(st.sampled_from(Right), min_size=1), spoken), max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=count_examples(30), deadline=None)
@given(people)
def test_each_moderator_is_found_by_token_with_rights_and_languages(
    tmp_path: Path, found: dict[str, tuple[frozenset[Right], tuple[Language, ...]]]
) -> None:
    path = tmp_path / "moderators.toml"
    path.write_text("", encoding="utf-8")
    secrets = {name: add_moderator(path, Moderator(name, "", *facts)) for name, facts in found.items()}
    moderators = open_moderators(path, SHIPPED)
    for name, secret in secrets.items():
        moderator = moderators.find(secret)
        assert moderator == Moderator(name, digest_of(secret), *found[name])
        assert secret not in path.read_text(encoding="utf-8"), "the file holds the token itself"


@given(st.frozensets(st.sampled_from(Right), min_size=1), spoken, st.sets(st.sampled_from(LANGUAGES)))
def test_moderator_decides_within_rights_and_languages(
    rights: frozenset[Right], own: tuple[Language, ...], asked: set[Language]
) -> None:
    moderator = Moderator("Asha", "", rights, own)
    permitted = Right.DECIDE in rights and (not own or asked <= set(own))
    assert Right.DECIDE not in rights or permitted == all(map(moderator.may_decide, asked))
    if permitted:
        moderator.require(asked)
    else:
        with pytest.raises(NotPermitted):
            moderator.require(asked)


def test_what_is_wrong_with_a_moderator_is_said_in_one_line(tmp_path: Path) -> None:
    path, asha = tmp_path / "moderators.toml", Moderator("Asha")
    add_moderator(path, asha)
    with pytest.raises(Misuse, match="has a token 'Asha'"):
        add_moderator(path, asha)
    for name in ("", " x", "a\nb", "x" * 61):
        with pytest.raises(Misuse, match="a name has up to 60 characters"):
            add_moderator(path, replace(asha, name=name))
    with pytest.raises(Misuse, match="a right is one of read, decide"):
        parse_rights(["store"])
    with pytest.raises(Misuse, match="unknown language 'klingon'"):
        parse_languages(["klingon"], SHIPPED)
    for table in ("rights = ['check']", "rights = []", "rights = ['read']\nlanguages = ['x']", "languages = ['hi']"):
        path.write_text(f"[Asha]\nsha256 = '{'0' * 64}'\n{table}\n", encoding="utf-8")
        with pytest.raises(Misuse) as refused:
            open_moderators(path, SHIPPED)
        assert "\n" not in str(refused.value), table


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger of two cases in Hindi, 1 and 3, and one in Tamil, 11."""
    with closing(connect(tmp_path / "neardup.db")) as db:
        for a, language in ((1, HINDI), (3, HINDI), (11, TAMIL)):
            flag_pair(db, a, a + 1, EXACT, language=language)
        yield db


@pytest.fixture
def secrets(tmp_path: Path) -> dict[str, str]:
    """The tokens of Asha, who decides everything, Ravi, who decides Tamil, and KAMALA, who reads."""
    path = tmp_path / "moderators.toml"
    return {
        moderator.name: add_moderator(path, moderator)
        for moderator in (
            Moderator("Asha"),
            Moderator("Ravi", languages=(TAMIL,)),
            Moderator(KAMALA, rights=frozenset({Right.READ})),
        )
    }


def statuses(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT status FROM flags ORDER BY a")]


async def decided(client: Client, secret: str, case_id: int, page: str) -> tuple[int, str]:
    """Give a verdict with the form of a page that another moderator was shown."""
    assert (await sign_in(client, secret))[0] == 303
    _, own = await get(client, "/")
    form = hidden_fields(page) | {"token": hidden_fields(own, "out")["token"], "verdict": "template", "note": "नोट"}
    status, _, answer = await send(client, f"/case/{case_id}/verdict", form)
    return status, answer


async def test_names_are_those_of_tokens(tmp_path: Path, ledger: sqlite3.Connection, secrets: dict[str, str]) -> None:
    async with desk(tmp_path, moderators=tmp_path / "moderators.toml") as client:
        async with client.get("/", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/login?back=/"), "a name can be typed"
        status, page = await sign_in(client, "not a token of anybody")
        assert (status, "not the token of a moderator" in page) == (403, True)
        assert (await sign_in(client, secrets[KAMALA]))[0] == 303
        client.session.cookie_jar.update_cookies({"neardup_name": "Asha"})
        _, page = await get(client, "/")
        assert f"You are <bdi>{KAMALA}</bdi>" in page and "/name" not in page
        assert (await get(client, "/name"))[0] == 404
        assert (await send(client, "/name", {"name": "Asha"} | hidden_fields(page, "out")))[0] == 404
        assert (await sign_in(client, secrets["Asha"]))[0] == 303
        _, page = await get(client, "/case/1")
        form = hidden_fields(page) | {"verdict": "plagiarism", "note": "नोट"}
        assert (await send(client, "/case/1/verdict", form))[0] == 303
        assert ledger.execute("SELECT DISTINCT moderator FROM verdicts").fetchall() == [("Asha",)]
        path = tmp_path / "moderators.toml"
        path.write_text(path.read_text(encoding="utf-8").partition('["Ravi"]')[0].replace("Asha", "Binu"))
        status, _, page = await send(client, "/case/3/verdict", form)
        assert (status, "You are not logged in" in page, "नोट</textarea>" in page) == (403, True, True)
        assert (await get(client, "/"))[1].count("Your token") == 1, "who was removed is still logged in"


async def test_moderators_decide_what_their_tokens_permit(
    tmp_path: Path, ledger: sqlite3.Connection, secrets: dict[str, str]
) -> None:
    async with desk(tmp_path, moderators=tmp_path / "moderators.toml") as client:
        await sign_in(client, secrets["Asha"])
        _, page = await get(client, "/case/1")
        await get(client, "/case/3")
        for name in (KAMALA, "Ravi"):
            status, answer = await decided(client, secrets[name], 1, page)
            assert (status, "not among your rights" in answer, "नोट</textarea>" in answer) == (403, True, True), name
            _, seen = await get(client, "/case/11" if name == KAMALA else "/case/3")
            _, pair = await get(client, "/pair/1/2")
            assert 'name="verdict"' not in seen + pair, f"{name} is offered a verdict"
        assert statuses(ledger) == ["open"] * 3
        assert ledger.execute("SELECT count(*) FROM leases WHERE moderator <> 'Asha'").fetchone() == (0,)
        _, listed = await get(client, "/")
        assert "1 case</h1>" in listed and "Your languages" in listed, "Ravi's queue is that of his language"
        assert (await get(client, "/?language=hi"))[1].count('type="checkbox"') == 0
        _, page = await get(client, "/case/11")
        assert (await decided(client, secrets["Ravi"], 11, page))[0] == 303
        assert statuses(ledger) == ["open", "open", "template"]
        _, done = await get(client, "/case/11?done=1")
        await sign_in(client, secrets[KAMALA])
        form = hidden_fields(done, "done") | {"token": hidden_fields((await get(client, "/"))[1], "out")["token"]}
        assert (await send(client, "/undo/1", form))[0] == 403
        assert statuses(ledger) == ["open", "open", "template"]


async def test_who_decides_last_of_two_goes_on_to_another_case(
    tmp_path: Path, ledger: sqlite3.Connection, secrets: dict[str, str]
) -> None:
    add_moderator(tmp_path / "moderators.toml", Moderator("Binu"))
    for a in (5, 7, 9):
        flag_pair(ledger, a, a + 1, EXACT)
    async with desk(tmp_path, moderators=tmp_path / "moderators.toml") as client:
        await sign_in(client, secrets["Asha"])
        _, page = await get(client, "/case/1?at=0")
        ledger.execute("INSERT INTO leases VALUES (3, 'Binu', 0, 9999999999999)")
        status, target, _ = await send(client, "/case/1/verdict", hidden_fields(page) | {"verdict": "template"})
        assert (status, target.partition("?")[0]) == (303, "/case/5")
        assert dict(ledger.execute("SELECT case_id, moderator FROM leases")) == {3: "Binu", 5: "Asha"}


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
        made = sign_login(keys, session, asha)
        assert find_login(Keys.of(token), session, made, known) is asha, "a restart ended a login"
        assert not find_login(keys, session + "x", made, known), "a login is valid for another session"
        assert not find_login(Keys.of(token + "x"), session, made, known), "a login survived a new token"
        assert not find_login(keys, session, made[:-1], known), "a truncated signature is accepted"
        assert not find_login(keys, session, made, known[:1]), "a login survived its moderator"
        renewed = [Moderator(name, digest_of(token + "x"))]
        assert not find_login(keys, session, made, renewed), "a login survived the moderator's new token"
        assert not find_login(Keys.of(""), session, made, known), "a desk without a token takes any key"
    with patch("time.time", lambda: now + LOGIN_SECONDS + 1):
        assert not find_login(keys, session, made, known), "a login does not expire"
        signed, signed_at, signature = made.rsplit(".", 2)
        with patch("time.time", lambda: now + 100):
            later = sign_login(keys, session, asha).rsplit(".", 2)[1]
        assert signed_at != later
        assert not find_login(keys, session, f"{signed}.{later}.{signature}", known), "a login was forged"


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
