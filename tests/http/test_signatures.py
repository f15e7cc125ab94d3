"""Laws of signed webhooks: a message verifies as it was sent, by any of its secrets, for a few minutes, and only so."""

import json
import time
from typing import Any

import neardup
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.http.signatures import decode_key, sign

from tests.support.paths import DEPLOY

SECRETS = [f"whsec_{letter * 32}" for letter in "abc"]
NOW = 1_800_000_000


def test_the_example_of_the_standard_verifies() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    event = neardup.verify_webhook(b'{"test": 2432232314}', headers, secret, now=1_614_265_330)
    assert event == {"test": 2432232314}


@given(st.text(), st.integers(-400, 400), st.data())
def test_a_message_verifies_as_it_was_sent_and_not_otherwise(text: str, age: int, data: st.DataObject) -> None:
    body = json.dumps({"text": text}).encode()
    headers = sign("id-1", body, SECRETS[:2], NOW - age)
    secret = data.draw(st.sampled_from(SECRETS))
    changed = data.draw(st.sampled_from(["nothing", "body", *headers]))
    if changed == "body":
        body = body.replace(b"text", b"tex1")
    elif changed != "nothing":
        headers[changed] = headers[changed].replace("1", "2")
    if changed == "nothing" and secret in SECRETS[:2] and abs(age) <= 300:
        assert neardup.verify_webhook(body, headers, [SECRETS[2], secret], now=NOW) == {"text": text}
    else:
        with pytest.raises(neardup.InvalidSignature):
            neardup.verify_webhook(body, headers, secret, now=NOW)


def test_the_example_of_the_documentation_verifies(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DEPLOY / "docs" / "serve.md").read_text(encoding="utf-8").partition("## Webhooks")[2]
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0].replace("whsec_...", SECRETS[0]), names)
    names["on_message"](b'{"text": "a"}', sign("id", b'{"text": "a"}', SECRETS[:1], int(time.time())))
    assert capsys.readouterr().out == "a\n"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_message_without_a_header_is_refused_by_name(name: str) -> None:
    headers = sign("id", b"{}", SECRETS, NOW)
    del headers[name]
    with pytest.raises(neardup.InvalidSignature, match=name):
        neardup.verify_webhook(b"{}", headers, SECRETS, now=NOW)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_" + "a" * 31, "whsec_" + "a" * 100, "a" * 38, "whsec_" + "*" * 32]
)
def test_a_secret_that_is_none_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="not whsec_ and 24 to 64 bytes in Base64") as error:
        decode_key(secret)
    assert len(secret) < 7 or secret[6:] not in str(error.value)
