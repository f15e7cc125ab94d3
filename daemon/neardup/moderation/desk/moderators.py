"""Who may open the desk, and how it knows them: moderators, sessions, logins, and a limit on wrong tokens.

They are the moderators of a file, or any person who has the desk's one token and enters a name.  What people type,
names and notes, is cleaned of characters that cannot be seen.

The desk stores no session, except which ones logged out.  A session is a random value in a cookie; form tokens and
logins are signed by itsdangerous (HMAC, RFC 2104) with keys that only the desk has.  Each client address waits longer
after each wrong token, and the log gets one line a minute.
"""

import hashlib
import re
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from cachetools import TTLCache
from itsdangerous import BadSignature, Signer, TimestampSigner
from msgspec import Struct, field

from neardup.config import Config
from neardup.core.languages import Languages
from neardup.errors import Misuse, NeardupError
from neardup.http import tokens
from neardup.http.tokens import Entry, TokenFile, digest_of, is_loopback, read_entries
from neardup.records import DECIDING, Language, Verdict
from neardup.telemetry.log import log

NAME_COOKIE = "neardup_name"
MAX_NAME_LENGTH = 60  # characters
MAX_NOTE_LENGTH = 2_000
JOINERS = "\u200c\u200d"  # zero-width (non-)joiners, which names in many scripts need
LOCAL_PATH = re.compile(r"/(?![/\\])[^\s\\]*")
KEY = "review.moderators"
OFFERED = (*DECIDING, Verdict.UNSURE)  # the verdicts that a moderator may give


def clean_name(text: str) -> str:
    """A name on one line; "" if the input has no visible character."""
    return " ".join(_drop_invisible(text, JOINERS).split())[:MAX_NAME_LENGTH].strip()


def clean_note(text: str) -> str:
    """A note without invisible characters and with \\n as line ends.  It may exceed MAX_NOTE_LENGTH."""
    return _drop_invisible(re.sub(r"\r\n?", "\n", text), JOINERS + "\n\t").strip()


def _drop_invisible(text: str, kept: str) -> str:
    """NFC without control, format and surrogate characters other than those in `kept`."""
    normalized = unicodedata.normalize("NFC", text)
    return "".join(
        character
        for character in normalized
        if character in kept or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    )


def choose_local_path(address: str) -> str:
    """The address if it is a path of this desk, else "/"."""
    return address if LOCAL_PATH.fullmatch(address) else "/"


class NotPermitted(NeardupError):
    """A moderator may not do this."""


class Right(StrEnum):
    """What a moderator may do."""

    READ = "read"
    DECIDE = "decide"  # and read


class Moderator(Struct, frozen=True):
    """A moderator, by the SHA-256 of a token; without `languages`, one for every language."""

    name: str
    digest: str = ""
    rights: frozenset[Right] = frozenset(Right)
    languages: tuple[Language, ...] = ()

    def may_decide(self, language: Language) -> bool:
        """Whether the moderator may give verdicts on stories in a language."""
        return Right.DECIDE in self.rights and (not self.languages or language in self.languages)

    def require(self, languages: Iterable[Language]) -> None:
        """Raise NotPermitted unless the moderator may give verdicts on stories in all of these languages."""
        if Right.DECIDE not in self.rights:
            raise NotPermitted("you may read cases, and not decide them")
        if others := [language.title() for language in languages if not self.may_decide(language)]:
            spoken = ", ".join(language.title() for language in self.languages)
            raise NotPermitted(f"you may decide cases in {spoken}, and not in {', '.join(others)}")


def open_moderators(path: Path, languages: Languages) -> TokenFile[Moderator]:
    """The moderators of a file.  Raises Misuse if it cannot be read, or is wrong."""
    return TokenFile(path, lambda path: [_make_moderator(entry, languages) for entry in read_entries(path, KEY)])


def read_credentials(config: Config, listen: str) -> tuple[str, Callable[[], Sequence[Moderator]]]:
    """The token of a desk on HOST:PORT, "" without one, and who may log in.

    Raises Misuse if other machines can reach the address and no token is set, or the file of the moderators is wrong.
    """
    section = config.review
    if section.moderators:
        return "", open_moderators(section.moderators, config.registry).holders
    token = section.token.reveal()
    if not (token or is_loopback(listen.rpartition(":")[0])):
        raise Misuse(f"review.token: {listen} can be reached by other machines: set NEARDUP_REVIEW__TOKEN")
    return token, lambda: [Moderator("", digest_of(token))] if token else []


def _make_moderator(entry: Entry, languages: Languages) -> Moderator:
    if not entry.name or clean_name(entry.name) != entry.name:
        raise Misuse(f"{KEY}: {entry.name!r} is not a name: it has up to 60 characters, all visible")
    spoken = parse_languages(entry.table.get("languages", []), languages)
    return Moderator(entry.name, entry.digest, parse_rights(entry.table["rights"]), spoken)


def parse_rights(names: Iterable[str]) -> frozenset[Right]:
    """The rights with these names.  Raises Misuse."""
    try:
        rights = frozenset(map(Right, names))
    except ValueError:
        rights = frozenset()
    if not rights:
        raise Misuse(f"rights: {', '.join(names)}: a right is one of {', '.join(Right)}")
    return rights


def parse_languages(names: Iterable[str], languages: Languages) -> tuple[Language, ...]:
    """The languages with these names or codes.  Raises Misuse."""
    try:
        return tuple(languages.find(name) for name in names)
    except ValueError as error:
        raise Misuse(f"languages: {error}") from None


def add_moderator(path: Path, moderator: Moderator) -> str:
    """Add a moderator to the file; returns the token, as `http.tokens.add_token` does.

    Raises Misuse for a name that is not one, or is taken.
    """
    if not moderator.name or clean_name(moderator.name) != moderator.name:
        raise Misuse(f"--new-token: {moderator.name!r}: a name has up to 60 characters, all of them visible")
    fields: dict[str, Iterable[str]] = {"rights": [right for right in Right if right in moderator.rights]}
    return tokens.add_token(path, KEY, moderator.name, fields | {"languages": moderator.languages})


# Sessions of browsers, their form tokens and their logins.

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
