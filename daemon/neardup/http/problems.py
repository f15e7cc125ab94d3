"""The kinds of failures that HTTP requests end in, answered as application/problem+json by RFC 9457.

The types are stable: a client may decide by them.
"""

from dataclasses import dataclass

CONTENT_TYPE = "application/problem+json"
RETRY_SECONDS = "1"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of failure; one that may pass is worth another attempt after RETRY_SECONDS."""

    name: str
    status: int
    title: str
    may_pass: bool = False

    @property
    def uri(self) -> str:
        """The `type` of its problems."""
        return f"urn:neardup:problem:{self.name}"

    @property
    def headers(self) -> dict[str, str]:
        """What the headers of an answer say of it."""
        headers = {"Retry-After": RETRY_SECONDS} if self.may_pass else {}
        if self is UNAUTHENTICATED:
            headers["WWW-Authenticate"] = 'Bearer realm="neardup"'
        if self is FORBIDDEN:
            headers["WWW-Authenticate"] = 'Bearer realm="neardup", error="insufficient_scope"'
        return headers


MALFORMED = ProblemType("malformed", 400, "The body is not JSON")
UNAUTHENTICATED = ProblemType("unauthenticated", 401, "The request has no valid token")
FORBIDDEN = ProblemType("forbidden", 403, "The token does not have this right")
NOT_FOUND = ProblemType("not-found", 404, "There is nothing at this address")
METHOD_NOT_ALLOWED = ProblemType("method-not-allowed", 405, "This address has no such method")
TOO_LARGE = ProblemType("too-large", 413, "The body is too large")
NOT_JSON = ProblemType("unsupported-media-type", 415, "The Content-Type is not application/json")
INVALID = ProblemType("invalid", 422, "The request does not fit the schema")
FAILED = ProblemType("failed", 500, "The service failed")
UNAVAILABLE = ProblemType("unavailable", 503, "The service cannot answer now", may_pass=True)
