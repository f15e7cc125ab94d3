"""Who may ask what, and how a request is refused: every refusal is a problem with a stable type.

Laws of the tokens: each is found with its rights, no other is, and a change of the file counts at once.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.errors import Misuse
from neardup.option_values import Right
from neardup.serve.tokens import new_token, open_tokens, parse_rights, read_tokens

from tests.support.sampling import count_examples
from tests.support.service import HttpClient, configuration, http_service, never_open, problem_of

STORY = {"language": "hi", "text": "राजू गाँव में रहता था"}
SMALL_BODY = 2_000


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[HttpClient]:
    """A service whose parts cannot be opened: what passes the checks is answered with 503."""
    config = configuration(tmp_path, max_body_bytes=SMALL_BODY)
    async with http_service(config, never_open) as (client, _):
        yield client


@pytest.mark.parametrize(
    ("operation", "request_options", "status", "name"),
    [
        ("POST /v1/check", {"json": STORY}, 503, "unavailable"),
        ("GET /v1/stories/1", {}, 503, "unavailable"),
        ("POST /v1/check", {"data": "{}", "headers": {"Content-Type": "text/plain"}}, 415, "unsupported-media-type"),
        ("POST /v1/check", {"json": STORY | {"text": "क" * SMALL_BODY}}, 413, "too-large"),
        ("GET /v1/check", {}, 405, "method-not-allowed"),
        ("GET /v2/check", {}, 404, "not-found"),
        ("GET /static/../app.py", {}, 404, "not-found"),
        ("GET /static/" + 300 * "x", {}, 404, "not-found"),
        ("GET /v1/stories/" + 1001 * "x", {}, 422, "invalid"),
        ("DELETE /v1/stories/a%0Ab", {}, 422, "invalid"),
        ("GET /healthz", {"headers": {"Host": "evil.example"}}, 421, "other-host"),
        ("GET /healthz", {"headers": {"X-Forwarded-For": "192.0.2.1"}}, 421, "other-host"),
    ],
)
async def test_a_refusal_is_a_problem(
    client: HttpClient, operation: str, request_options: dict[str, Any], status: int, name: str
) -> None:
    answered, problem = await problem_of(client, *operation.split(), **request_options)
    assert (answered, problem["type"]) == (status, f"urn:neardup:problem:{name}")
    assert problem["fail_open"] == (status == 503)


async def test_what_cannot_be_decided_fails_open_and_says_when_to_ask_again(client: HttpClient) -> None:
    async with client.post("/v1/check", json=STORY) as answer:
        problem = await answer.json()
        assert (answer.headers["Retry-After"], problem["fail_open"]) == ("1", True)
    assert "Redis does not answer" in problem["detail"]
    async with client.get("/readyz") as answer:
        assert answer.status == 503
    async with client.get("/healthz") as answer:
        assert answer.status == 200, "the process answers, so it is not to be restarted"


async def test_a_request_keeps_its_id_or_gets_one(client: HttpClient) -> None:
    async with client.get("/healthz", headers={"X-Request-ID": "publish-17"}) as answer:
        assert answer.headers["X-Request-ID"] == "publish-17"
    made = set()
    for sent in ("", "x" * 65, "two words", "ключ"):
        async with client.get("/healthz", headers={"X-Request-ID": sent}) as answer:
            made.add(answer.headers["X-Request-ID"])
    assert len(made) == 4, "an id that could not be used was not replaced by a new one"


async def test_each_operation_takes_a_token_with_its_right(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    secrets = {right: new_token(path, right, frozenset({right})) for right in Right}
    operations = {
        ("POST", "/v1/check"): Right.CHECK,
        ("POST", "/v1/check:batch"): Right.CHECK,
        ("POST", "/v1/compare"): Right.CHECK,
        ("GET", "/v1/stories/1"): Right.CHECK,
        ("GET", "/v1/stories/1/matches"): Right.CHECK,
        ("GET", "/v1/stories/1/proof"): Right.CHECK,
        ("PUT", "/v1/stories/1"): Right.STORE,
        ("DELETE", "/v1/stories/1"): Right.FORGET,
        ("PUT", "/v1/drafts/1"): Right.STORE,
        ("POST", "/v1/drafts/1/check"): Right.CHECK,
        ("GET", "/v1/drafts/1"): Right.CHECK,
        ("DELETE", "/v1/drafts/1"): Right.STORE,
    }
    async with http_service(configuration(tmp_path, tokens=path), never_open) as (client, _):
        for (method, address), needed in operations.items():
            for right, secret in secrets.items():
                headers = {"Authorization": f"Bearer {secret}"}
                status, _ = await problem_of(client, method, address, json=STORY, headers=headers)
                assert status == (503 if right is needed else 403), f"{method} {address} with a token to {right}"
            for headers in ({}, {"Authorization": "Bearer neardup_x"}, {"Authorization": "Basic eDp5"}):
                status, problem = await problem_of(client, method, address, json=STORY, headers=headers)
                assert (status, problem["type"]) == (401, "urn:neardup:problem:unauthenticated"), f"{method} {address}"
        for address, status in (("/metrics", 401), ("/healthz", 200), ("/", 200), ("/openapi.json", 200)):
            async with client.get(address, headers={"Host": "api.example"}) as answer:
                assert answer.status == status, address
        async with client.get("/metrics", headers={"Authorization": f"Bearer {secrets[Right.STORE]}"}) as answer:
            text = await answer.text()
    assert 'neardup_http_requests_total{method="PUT",route="/v1/stories/{id}",status="403"}' in text
    assert "stories/1" not in text, "a metric has a label that grows with the stories"


NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
RIGHTS = st.frozensets(st.sampled_from(Right), min_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=count_examples(30))
@given(st.dictionaries(NAMES, RIGHTS, min_size=1, max_size=4), st.booleans())
def test_each_token_is_found_with_its_rights(
    tmp_path: Path, rights: dict[str, frozenset[Right]], is_edited: bool
) -> None:
    path, secrets = tmp_path / "tokens.toml", {}
    path.unlink(missing_ok=True)
    for name, chosen in rights.items():
        secrets[name] = new_token(path, name, chosen)
        if is_edited:  # by an editor that leaves the last line without an end
            path.write_text(path.read_text("utf-8").rstrip("\n"), "utf-8")
    tokens = open_tokens(path)
    for name, secret in secrets.items():
        token = tokens.find(secret)
        assert token is not None
        assert (token.name, token.rights) == (name, rights[name])
        assert secret not in path.read_text(encoding="utf-8"), "the file holds the token itself"
        assert tokens.find(secret[:-1]) is tokens.find("") is tokens.find(token.digest) is None
    assert path.stat().st_mode & 0o007 == 0, "every user of the machine can read the tokens"


def test_a_token_that_is_added_or_removed_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    first = new_token(path, "first", frozenset({Right.CHECK}))
    tokens = open_tokens(path)
    second = new_token(path, "second", frozenset(Right))
    assert tokens.find(second) is not None
    path.write_text("not TOML", encoding="utf-8")
    assert tokens.find(first) is not None, "a damaged file locked everyone out"
    path.write_text("", encoding="utf-8")
    assert tokens.find(first) is None


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    new_token(path, "app", frozenset({Right.CHECK}))
    for name, words in (("app", "has a token 'app'"), ("a b", "a name has up to 64"), ("", "a name has up to 64")):
        with pytest.raises(Misuse, match=words):
            new_token(path, name, frozenset({Right.CHECK}))
    with pytest.raises(Misuse, match="a right is one of check, store, forget"):
        parse_rights(["check", "read"])
    with pytest.raises(Misuse, match=r"cannot read .*none\.toml"):
        read_tokens(tmp_path / "none.toml")
    for text in (
        "[app",
        "app = 1",
        "[app]\nsha256 = 'x'\nrights = []",
        f"[app]\nsha256 = '{'0' * 64}'\nrights = ['x']",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(Misuse) as refused:
            read_tokens(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(Misuse, match="cannot write"):
        new_token(tmp_path / "none" / "tokens.toml", "app", frozenset({Right.CHECK}))
