"""Laws of what a request brings: a body is its model, or a refusal that names the wrong members and quotes nothing; a
token is found whoever else has one.
"""

import json

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from neardup.http.problems import INVALID, MALFORMED, NOT_JSON, UNAUTHENTICATED, Refused
from neardup.http.requests import client_address, expect_json, holder_of_token, names_this_machine, parse_json
from neardup.http.tokens import Entry, digest_of
from pydantic import BaseModel, ConfigDict

SECRET = "रहस्य"


class Story(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    ids: list[int] = []


members = st.dictionaries(
    st.sampled_from(["text", "ids", "other"]), st.one_of(st.just(SECRET), st.integers(), st.lists(st.just(SECRET)))
)


@given(members)
def test_a_body_is_its_model_or_names_what_is_wrong(body: dict[str, object]) -> None:
    if body.get("text") == SECRET and body.get("ids", []) == [] and "other" not in body:
        assert parse_json(Story, json.dumps(body).encode()).model_dump(exclude_unset=True) == body
        return
    with pytest.raises(Refused) as raised:
        parse_json(Story, json.dumps(body).encode())
    refused = raised.value
    assert refused.problem is INVALID and refused.errors
    assert {wrong.where.partition(".")[0] for wrong in refused.errors} <= {"text", "ids", "other"}
    assert SECRET not in str(refused), "a refusal quotes the body"


@given(st.binary(max_size=20).filter(lambda body: not body.strip()[:1].isdigit()))
def test_a_body_that_is_not_json_is_malformed(body: bytes) -> None:
    try:
        json.loads(body)
    except ValueError:
        with pytest.raises(Refused) as refused:
            parse_json(Story, body)
        assert refused.value.problem is MALFORMED


def test_a_content_type_is_needed() -> None:
    expect_json(make_mocked_request("POST", "/", {"Content-Type": "application/json; charset=utf-8"}))
    with pytest.raises(Refused) as refused:
        expect_json(make_mocked_request("POST", "/", {"Content-Type": "text/plain"}))
    assert refused.value.problem is NOT_JSON


@given(st.lists(st.text("abc", min_size=1), min_size=1, unique=True), st.data())
def test_a_token_is_found_among_others(secrets: list[str], data: st.DataObject) -> None:
    holders = [Entry(secret, digest_of(secret), {}) for secret in secrets]
    secret = data.draw(st.sampled_from(secrets))
    request = make_mocked_request("GET", "/", {"Authorization": f"Bearer {secret}"})
    assert holder_of_token(request, holders).name == secret
    for wrong in ({}, {"Authorization": secret}, {"Authorization": f"Bearer {secret}x"}):
        with pytest.raises(Refused) as refused:
            holder_of_token(make_mocked_request("GET", "/", wrong), [holders[secrets.index(secret)]])
        assert refused.value.problem is UNAUTHENTICATED


@pytest.mark.parametrize(
    ("host", "is_this"), [("localhost:1", True), ("[::1]:80", True), ("127.0.0.1", True), ("a.example", False)]
)
def test_hosts_of_this_machine(host: str, is_this: bool) -> None:
    assert names_this_machine(make_mocked_request("GET", "/", {"Host": host})) == is_this


def test_only_a_proxy_on_this_machine_is_believed() -> None:
    request = make_mocked_request("GET", "/", {"X-Forwarded-For": "10.9.9.9, 192.0.2.7"})
    assert client_address(request.clone(remote="127.0.0.1")) == "192.0.2.7"
    assert client_address(request.clone(remote="192.0.2.1")) == "192.0.2.1"
