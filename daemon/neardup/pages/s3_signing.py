"""Signs GETs of objects: AWS Signature Version 4.

The algorithm: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

Why not libcurl's: it derives the signing key anew for each request, from five SHA-256 contexts of its own, which took
29 % of the CPU of a fetch.  The key is the same for a day, and all headers but Authorization for a second.
"""

import hashlib
import hmac
import time
from typing import Any

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()  # of the body of a GET
NO_QUERY = ""


class Signer:
    """Makes the headers of GETs from the host of a bucket; `host` is what the Host header names."""

    def __init__(self, host: str, region: str) -> None:
        self._host = host
        self._region = region
        self._signed: tuple[object, int] | None = None  # the access keys and the second of what follows
        self._key_of: tuple[str, str] | None = None  # the secret key and the day of the signing key
        self._key: hmac.HMAC
        self._headers: list[bytes] = []
        self._canonical_headers = b""  # and what else follows the path in the canonical request
        self._string_to_sign = b""  # before the hash of the canonical request
        self._authorization = b""  # before the signature

    def headers(self, path: str, keys: Any, second: int) -> list[bytes]:
        """All headers of a GET of `path`, which is percent-encoded and has no query.

        `keys` have an access_key, a secret_key and a token, which may be None; `second` counts from the epoch.
        """
        if (keys, second) != self._signed:
            self._enter_second(keys, second)
        canonical_request = hashlib.sha256(b"GET\n%b\n%b" % (path.encode(), self._canonical_headers))
        signature = self._key.copy()
        signature.update(self._string_to_sign + canonical_request.hexdigest().encode())
        return [*self._headers, self._authorization + signature.hexdigest().encode()]

    def _enter_second(self, keys: Any, second: int) -> None:
        """Compute what requests with the same keys share in this second."""
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = date[:8]
        if self._key_of != (keys.secret_key, day):
            self._key, self._key_of = self._signing_key(keys.secret_key, day), (keys.secret_key, day)
        fields = {"host": self._host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": date}
        if keys.token:
            fields["x-amz-security-token"] = keys.token
        names, scope = ";".join(fields), f"{day}/{self._region}/s3/aws4_request"
        canonical_fields = "".join(f"{name}:{value}\n" for name, value in fields.items())
        self._headers = [f"{name}: {value}".encode() for name, value in fields.items()]
        self._canonical_headers = f"{NO_QUERY}\n{canonical_fields}\n{names}\n{EMPTY_SHA256}".encode()
        self._string_to_sign = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n".encode()
        self._authorization = (
            f"Authorization: AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature="
        ).encode()
        self._signed = keys, second

    def _signing_key(self, secret_key: str, day: str) -> hmac.HMAC:
        """The HMAC with the signing key of a day, to be copied for each signature."""
        key = f"AWS4{secret_key}".encode()
        for part in (day, self._region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, digestmod="sha256")
