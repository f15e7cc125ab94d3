"""Sessions of browsers, their form tokens, and their logins.

The desk stores none of these, except which sessions logged out.  The session is a random value in a cookie; form
tokens and logins are signed by itsdangerous (HMAC, RFC 2104) with keys that only the desk has.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from cachetools import TTLCache
from itsdangerous import BadSignature, Signer, TimestampSigner

SESSION_COOKIE = "neardup_session"
LOGIN_COOKIE = "neardup_login"
SESSION_FORMAT = re.compile(r"[\w-]{43}", re.ASCII)
LOGIN_SECONDS = 7 * 86_400
MOST_ENDED = 10_000
SIGNER_OPTIONS: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True, slots=True)
class Keys:
    """The signers of a desk.

    The key of form tokens ends with the process.  Logins are signed with the configured token: they survive a
    restart, and a new token invalidates all of them.  The logins of `ended` sessions are over, until a restart.
    """

    forms: Signer
    logins: TimestampSigner
    token: bytes
    ended: TTLCache[str, None] = field(default_factory=lambda: TTLCache(MOST_ENDED, LOGIN_SECONDS))

    @classmethod
    def of(cls, token: str) -> Self:
        """The signers for this configured token."""
        return cls(
            Signer(secrets.token_bytes(32), b"neardup form", **SIGNER_OPTIONS),
            TimestampSigner(token.encode(), b"neardup login", **SIGNER_OPTIONS),
            token.encode(),
        )

    def is_token(self, text: str) -> bool:
        """Whether a text is the configured token, compared in constant time."""
        return hmac.compare_digest(text.encode(errors="replace"), self.token)


def new_session() -> str:
    """A new session of 256 random bits."""
    return secrets.token_urlsafe(32)


def is_session(text: str) -> bool:
    return SESSION_FORMAT.fullmatch(text) is not None


def form_token(keys: Keys, session: str) -> str:
    """The token for the forms of this session, which no other site can know (CSRF)."""
    return keys.forms.get_signature(session).decode()


def is_form_token(keys: Keys, session: str, text: str) -> bool:
    return keys.forms.verify_signature(session.encode(), text.encode(errors="replace"))


def login(keys: Keys, session: str) -> str:
    """The login cookie for a session that entered the token; valid for LOGIN_SECONDS."""
    return keys.logins.sign(session).decode()


def log_out(keys: Keys, session: str) -> None:
    """End the login of a session, also for whoever has a copy of its cookies."""
    keys.ended[session] = None


def is_login(keys: Keys, session: str, text: str) -> bool:
    if session in keys.ended:
        return False
    try:
        return keys.logins.unsign(text.encode(errors="replace"), max_age=LOGIN_SECONDS) == session.encode()
    except BadSignature:  # raised for expired logins, too
        return False


def set_cookie(
    request: web.Request, response: web.StreamResponse, name: str, value: str, seconds: int | None = None
) -> None:
    """Set a cookie that scripts cannot read, requests from other sites do not carry, and only TLS carries if it can."""
    response.set_cookie(
        name, value, max_age=seconds, httponly=True, samesite="Strict", path="/", secure=is_over_tls(request)
    )


def is_over_tls(request: web.Request) -> bool:
    """Whether the browser reached the desk, or the proxy before it, over TLS.

    The headers are believed from everyone: who forges them only makes the own cookies stricter.
    """
    schemes = request.scheme, request.headers.get("X-Forwarded-Proto", ""), request.headers.get("Origin", "")
    return any(scheme.partition(",")[0].partition(":")[0].strip().lower() == "https" for scheme in schemes)
