"""Laws of a desk whose moderators have tokens: the token gives the name, the rights and the languages, and nothing else
does; who may only read, and who does not decide a language, changes nothing.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

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
    Moderator,
    NotPermitted,
    Right,
    add_moderator,
    clean_name,
    open_moderators,
    parse_languages,
    parse_rights,
)
from neardup.records import Language

from tests.support.builders import flag_pair
from tests.support.desk_client import Client, desk, get, hidden_fields, send, sign_in
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples

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
