"""Sessions of browsers, their form tokens, their logins, and a limit on wrong tokens.

The desk stores none of these, except which sessions logged out.  The session is a random value in a cookie; form
tokens and logins are signed by itsdangerous (HMAC, RFC 2104) with keys that only the desk has.

Each client address waits longer after each wrong token, and the log gets one line a minute.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Any, Self
from urllib.parse import quote

from aiohttp import web
from cachetools import TTLCache
from itsdangerous import BadSignature, Signer, TimestampSigner
from msgspec import Struct, field

from neardup.moderation.desk.moderators import Moderator
from neardup.telemetry.log import log

SESSION_COOKIE = "neardup_session"
LOGIN_COOKIE = "neardup_login"
SESSION_FORMAT = re.compile(r"[\w-]{43}", re.ASCII)
LOGIN_SECONDS = 7 * 86_400
MOST_ENDED = 10_000
SIGNER_OPTIONS: dict[str, Any] = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


class Keys(Struct, frozen=True):
    """The keys of a desk.

    The key of form tokens ends with the process.  Logins are signed with the desk's one token: they survive a restart.
    Where each moderator has a token, of which the desk has only the digest, they are signed with a key of the process.
    A new token invalidates the logins by the former one.  Those of `ended` sessions are over, until a restart.
    """

    forms: Signer
    logins: bytes
    ended: TTLCache[str, None] = field(default_factory=lambda: TTLCache(MOST_ENDED, LOGIN_SECONDS))

    @classmethod
    def of(cls, token: str) -> Self:
        """The keys of a desk with this token; "" if it has none."""
        forms = Signer(secrets.token_bytes(32), b"neardup form", **SIGNER_OPTIONS)
        return cls(forms, token.encode() or secrets.token_bytes(32))


def make_session() -> str:
    """A new session of 256 random bits."""
    return secrets.token_urlsafe(32)


def is_session(text: str) -> bool:
    return SESSION_FORMAT.fullmatch(text) is not None


def make_form_token(keys: Keys, session: str) -> str:
    """The token for the forms of this session, which no other site can know (CSRF)."""
    return keys.forms.get_signature(session).decode()


def is_form_token(keys: Keys, session: str, text: str) -> bool:
    return keys.forms.verify_signature(session.encode(), text.encode(errors="replace"))


def sign_login(keys: Keys, session: str, moderator: Moderator) -> str:
    """The login cookie for a session that entered the token of this moderator; valid for LOGIN_SECONDS."""
    return _make_signer(keys, moderator).sign(_write_login(session, moderator)).decode()


def log_out(keys: Keys, session: str) -> None:
    """End the login of a session, also for a person who has a copy of its cookies."""
    keys.ended[session] = None


def find_login(keys: Keys, session: str, text: str, moderators: Iterable[Moderator]) -> Moderator | None:
    """Which of these moderators a login cookie of this session belongs to; None if it is not valid."""
    claimed = text.rsplit(".", 2)[0]  # what is signed, before the time and the signature
    moderator = next((known for known in moderators if _write_login(session, known) == claimed), None)
    if moderator is None or session in keys.ended:
        return None
    try:
        _make_signer(keys, moderator).unsign(text.encode(errors="replace"), max_age=LOGIN_SECONDS)
    except BadSignature:  # raised for expired logins, too
        return None
    return moderator


def _write_login(session: str, moderator: Moderator) -> str:
    return f"{session}.{quote(moderator.name)}"


def _make_signer(keys: Keys, moderator: Moderator) -> TimestampSigner:
    return TimestampSigner(keys.logins, f"neardup login {moderator.digest}", **SIGNER_OPTIONS)


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


# The limit on wrong tokens.

FREE_ATTEMPTS = 5  # without a wait, for people who mistype
FIRST_WAIT_SECONDS = 2.0  # after them; each further wrong token doubles it
LONGEST_WAIT_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3_600
MOST_CLIENTS = 10_000  # remembered at a time
LOG_EVERY_SECONDS = 60.0


class _Failures(Struct, frozen=True):
    """The wrong tokens of a client so far, and when it may try again."""

    count: int
    next_at: float


class LoginLimit:
    """Counts wrong tokens by client; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: TTLCache[str, _Failures] = TTLCache(MOST_CLIENTS, FORGOTTEN_AFTER_SECONDS, clock)
        self._refused = 0  # since the last log line
        self._last_logged = float("-inf")

    def wait_seconds(self, address: str) -> int:
        """How long a client must wait before its next attempt counts; 0 if it need not wait."""
        failures = self._failures.get(_find_client(address))
        return 0 if failures is None else max(ceil(failures.next_at - self._clock()), 0)

    def refuse(self, address: str, *, wrong: bool) -> None:
        """Record a refused attempt; `wrong` if its token was compared, and not refused because of the wait."""
        now, client = self._clock(), _find_client(address)
        if wrong:
            failures = self._failures.get(client)
            count = failures.count + 1 if failures else 1
            doublings = count - FREE_ATTEMPTS
            wait = min(FIRST_WAIT_SECONDS * 2 ** min(doublings, 30), LONGEST_WAIT_SECONDS) if doublings >= 0 else 0
            self._failures[client] = _Failures(count, now + wait)
        self._refused += 1
        if now - self._last_logged >= LOG_EVERY_SECONDS:
            log.warning("a login was refused", remote=client, attempts=self._refused)
            self._refused, self._last_logged = 0, now

    def accept(self, address: str) -> None:
        """Forget the wrong tokens of a client that gave the right one."""
        self._failures.pop(_find_client(address), None)


def _find_client(address: str) -> str:
    """An address as one client: of IPv6 its network of 64 bits, all of which one client may have."""
    try:
        known = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(known, IPv6Address):
        known = known.ipv4_mapped or known
    return str(ip_network((known, 64), strict=False)) if isinstance(known, IPv6Address) else str(known)
