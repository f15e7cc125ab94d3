"""Laws of what a request brings: a body is its model, or a refusal that names the wrong members and quotes nothing; a
token is found whoever else has one.
"""

import json
from contextlib import nullcontext

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from neardup.http.requests import (
    INVALID,
    MALFORMED,
    NOT_JSON,
    UNAUTHENTICATED,
    Refused,
    expect_json,
    find_client_address,
    find_holder,
    parse_json,
    refuse_other_machines,
)
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
    assert find_holder(request, holders).name == secret
    for wrong in ({}, {"Authorization": secret}, {"Authorization": f"Bearer {secret}x"}):
        with pytest.raises(Refused) as refused:
            find_holder(make_mocked_request("GET", "/", wrong), [holders[secrets.index(secret)]])
        assert refused.value.problem is UNAUTHENTICATED


@pytest.mark.parametrize(
    ("host", "is_this"), [("localhost:1", True), ("[::1]:80", True), ("127.0.0.1", True), ("a.example", False)]
)
@pytest.mark.parametrize("forwarded", [{}, {"Via": "1.1 proxy"}, {"x-real-ip": "192.0.2.1"}], ids=str)
def test_only_this_machine_needs_no_token(host: str, is_this: bool, forwarded: dict[str, str]) -> None:
    request = make_mocked_request("GET", "/", {"Host": host} | forwarded)
    with nullcontext() if is_this and not forwarded else pytest.raises(Refused):
        refuse_other_machines(request)


@given(st.lists(st.ip_addresses(), max_size=3), st.lists(st.sampled_from(["127.0.0.1", "10.1.2.3", "::ffff:10.0.0.9"])))
def test_only_configured_proxies_are_believed(forged: list[object], proxies: list[str]) -> None:
    """The client is the address that the outermost proxy saw, whatever the client sends itself."""
    client = "192.0.2.7"
    hops = [*map(str, forged), client, *proxies]
    request = make_mocked_request("GET", "/", {"X-Forwarded-For": ", ".join(hops[:-1])}).clone(remote=hops[-1])
    assert find_client_address(request, ["127.0.0.1", "10.0.0.0/8"]) == client
    assert find_client_address(request, []) == hops[-1], "without configured proxies, the peer is the client"
