"""Who a browser is: a session drawn at random, the forms that were made for it, and whether it has logged in.

Nothing of it is kept: a browser holds its session in a cookie, and what was given to it is told by an
HMAC (RFC 2104) of it with a key that nobody else has.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Self

from aiohttp import web

SESSION_COOKIE = "neardup_session"
LOGIN_COOKIE = "neardup_login"
SESSION = re.compile(r"[\w-]{43}", re.ASCII)
LOGIN_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of a desk.  That of logins is made of the token: a restart logs nobody out, another token everybody."""

    forms: bytes
    logins: bytes
    token: bytes

    @classmethod
    def of(cls, token: str) -> Self:
        secret = token.encode()
        return cls(secrets.token_bytes(32), hashlib.sha256(b"neardup review " + secret).digest(), secret)

    def is_token(self, said: str) -> bool:
        """Whether it is the token, in a time that does not tell how much of it is."""
        return hmac.compare_digest(said.encode(errors="replace"), self.token)


def new_session() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def is_session(said: str) -> bool:
    return SESSION.fullmatch(said) is not None


def form_token(keys: Keys, session: str) -> str:
    """What a form of this session carries, so that no other site can post one (CSRF)."""
    return _mac(keys.forms, session)


def is_form_token(keys: Keys, session: str, said: str) -> bool:
    return _same(form_token(keys, session), said)


def login(keys: Keys, session: str, now: float) -> str:
    """What a session that gave the token holds; good for LOGIN_SECONDS from `now`, in seconds since 1970."""
    until = str(int(now) + LOGIN_SECONDS)
    return f"{until}.{_mac(keys.logins, f'{session}.{until}')}"


def is_login(keys: Keys, session: str, said: str, now: float) -> bool:
    until, _, mac = said.partition(".")
    return (
        until.isdecimal()
        and until.isascii()
        and _same(_mac(keys.logins, f"{session}.{until}"), mac)
        and now < int(until)
    )


def set_cookie(answer: web.StreamResponse, name: str, value: str, seconds: int | None = None) -> None:
    """A cookie that no script sees and no other site's request carries."""
    answer.set_cookie(name, value, max_age=seconds, httponly=True, samesite="Strict", path="/")


def _mac(key: bytes, said: str) -> str:
    return hmac.new(key, said.encode(), "sha256").hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode(errors="replace"))
