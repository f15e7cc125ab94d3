"""Which browser sends a request: its random session, its form tokens, and whether it has logged in.

The desk stores none of this.  A browser keeps its session in a cookie; what the desk gives it is signed by
itsdangerous (HMAC, RFC 2104) with a key that only the desk has.
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
SESSION = re.compile(r"[\w-]{43}", re.ASCII)
LOGIN_SECONDS = 7 * 86_400
SIGNATURE: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@dataclass(frozen=True, slots=True)
class Keys:
    """The signers of a desk.

    Form tokens end with the process.  Logins are signed with the configured token, so that a restart ends none
    of them and another token ends all.
    """

    forms: Signer
    logins: TimestampSigner
    token: bytes

    @classmethod
    def of(cls, token: str) -> Self:
        """The signers for this configured token."""
        return cls(
            Signer(secrets.token_bytes(32), b"neardup form", **SIGNATURE),
            TimestampSigner(token.encode(), b"neardup login", **SIGNATURE),
            token.encode(),
        )

    def is_token(self, text: str) -> bool:
        """Whether it is the token, compared in constant time."""
        return hmac.compare_digest(text.encode(errors="replace"), self.token)


def new_session() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def is_session(text: str) -> bool:
    return SESSION.fullmatch(text) is not None


def form_token(keys: Keys, session: str) -> str:
    """The token in this session's forms, so that no other site can post one (CSRF)."""
    return keys.forms.get_signature(session).decode()


def is_form_token(keys: Keys, session: str, text: str) -> bool:
    return keys.forms.verify_signature(session.encode(), text.encode(errors="replace"))


def login(keys: Keys, session: str) -> str:
    """The login cookie of a session that gave the token; valid for LOGIN_SECONDS."""
    return keys.logins.sign(session).decode()


def is_login(keys: Keys, session: str, text: str) -> bool:
    try:
        return keys.logins.unsign(text.encode(errors="replace"), max_age=LOGIN_SECONDS) == session.encode()
    except BadSignature:  # also for a login that has expired
        return False


def set_cookie(answer: web.StreamResponse, name: str, value: str, seconds: int | None = None) -> None:
    """Set a cookie that no script can read and no other site's request carries."""
    answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite="Strict", path="/")
