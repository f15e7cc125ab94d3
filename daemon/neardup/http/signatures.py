"""Signatures of webhooks, by Standard Webhooks 1.0: HMAC-SHA256 over the id, the time and the body of a message.

The headers of a message are `webhook-id`, which stays the same in each attempt to deliver it, `webhook-timestamp`, in
seconds since 1970, and `webhook-signature`, with one signature a secret.  So a secret is replaced without a pause: give
the sender both, replace that of the receivers, and then take the old one from the sender.
See https://www.standardwebhooks.com.
"""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from neardup.errors import NeardupError

PREFIX = "whsec_"  # lets scanners for leaked secrets recognise one
SECRET_BYTES = range(24, 65)
TOLERANCE_SECONDS = 300
ID, TIME, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"


class InvalidSignature(NeardupError):
    """A message that does not come from the sender, or not now."""


def decode_key(secret: str) -> bytes:
    """The key in a secret.  Raises ValueError, which does not show it."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or len(key) not in SECRET_BYTES:
        raise ValueError(f"not {PREFIX} and 24 to 64 bytes in Base64")
    return key


def sign(message_id: str, body: bytes, secrets: Sequence[str], seconds: int) -> dict[str, str]:
    """The headers of a message that is sent at a time; one without a signature where there are no secrets."""
    signatures = [_compute_signature(decode_key(secret), message_id, str(seconds), body) for secret in secrets]
    headers = {ID: message_id, TIME: str(seconds)}
    return headers | {SIGNATURE: " ".join(signatures)} if signatures else headers


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> dict[str, Any]:
    """The event in a message that a webhook received, whose signature is by any of these secrets.

    `body` is as it arrived, and the names of `headers` are in any case.  The clocks may differ by `tolerance` seconds;
    an older message may be a replay.  A message may arrive more than once: its `webhook-id` says so.  Raises
    InvalidSignature, and ValueError for a secret that is none.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if missing := [name for name in (ID, TIME, SIGNATURE) if name not in given]:
        raise InvalidSignature(f"the header {missing[0]} is missing")
    if not (given[TIME].isascii() and given[TIME].isdecimal()):
        raise InvalidSignature(f"the header {TIME} is no time")
    keys = [decode_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    expected = [_compute_signature(key, given[ID], given[TIME], body).encode() for key in keys]
    found = [signature.encode() for signature in given[SIGNATURE].split()]
    matches = [hmac.compare_digest(right, signature) for right in expected for signature in found]
    if not any(matches):  # all were compared: the time taken says nothing
        raise InvalidSignature("no signature is by one of the secrets")
    if abs((time.time() if now is None else now) - int(given[TIME])) > tolerance:
        raise InvalidSignature(f"the message is not of the last {tolerance:g} seconds")
    event: dict[str, Any] = json.loads(body)
    return event


def _compute_signature(key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, sha256)).decode()
