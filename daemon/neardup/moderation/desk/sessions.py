"""Sessions of browsers, their form tokens, and their logins.

The desk stores none of these.  The session is a random value in a cookie; form tokens and logins are signed by
itsdangerous (HMAC, RFC 2104) with keys that only the desk has.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web
from itsdangerous import BadSignature, Signer, TimestampSigner

SESSION_COOKIE = "neardup_session"
LOGIN_COOKIE = "neardup_login"
SESSION_FORMAT = re.compile(r"[\w-]{43}", re.ASCII)
LOGIN_SECONDS = 7 * 86_400
SIGNER_OPTIONS: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True, slots=True)
class Keys:
    """The signers of a desk.

    The key of form tokens ends with the process.  Logins are signed with the configured token: they survive a
    restart, and a new token invalidates all of them.
    """

    forms: Signer
    logins: TimestampSigner
    token: bytes

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


def is_login(keys: Keys, session: str, text: str) -> bool:
    try:
        return keys.logins.unsign(text.encode(errors="replace"), max_age=LOGIN_SECONDS) == session.encode()
    except BadSignature:  # raised for expired logins, too
        return False


def set_cookie(response: web.StreamResponse, name: str, value: str, seconds: int | None = None) -> None:
    """Set a cookie that scripts cannot read and requests from other sites do not carry."""
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="Strict", path="/")
