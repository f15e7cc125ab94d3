"""The tokens of the HTTP service with their rights, and the tokens of authors.

The token of an author permits to read what concerns the stories of this author, until it expires.  It is signed with a
key of the service by itsdangerous (HMAC with SHA-256), together with its time; the service keeps none of them.  The
file of the key is read again when it changes: the tokens of the former key end then.
"""

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, Self

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer
from msgspec import Struct

from neardup.errors import Misuse
from neardup.http import tokens
from neardup.http.requests import UNAUTHENTICATED, ProblemType, Refused
from neardup.http.tokens import PREFIX, SecretFile, TokenFile, read_entries
from neardup.option_values import Right

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOKENS, AUTHOR_KEY = "serve.tokens", "serve.author_key"  # of the configuration


class Token(Struct, frozen=True):
    """A token by the SHA-256 of its secret, in hexadecimal digits."""

    name: str
    digest: str
    rights: frozenset[Right]


def open_tokens(path: Path) -> TokenFile[Token]:
    """The tokens of a file.  Raises Misuse if it cannot be read, or is wrong."""
    return TokenFile(path, read_tokens)


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file.  Raises Misuse, whose message names what is wrong."""
    return [
        Token(entry.name, entry.digest, parse_rights(entry.table["rights"])) for entry in read_entries(path, TOKENS)
    ]


def parse_rights(names: list[str]) -> frozenset[Right]:
    """The rights with these names.  Raises Misuse."""
    try:
        return frozenset(map(Right, names))
    except ValueError:
        raise Misuse(f"rights: {', '.join(names)}: a right is one of {', '.join(Right)}") from None


def new_token(path: Path, name: str, rights: frozenset[Right]) -> str:
    """Add a token to the file and return its secret, as `http.tokens.add_token` does.

    Raises Misuse for a name that is not one, or is taken.
    """
    if not NAME.fullmatch(name):
        raise Misuse(f"--new-token: {name!r}: a name has up to 64 letters, digits, hyphens and underscores")
    return tokens.add_token(path, TOKENS, name, {"rights": [right for right in Right if right in rights]})


# The tokens of authors

AUTHOR_PREFIX = f"{PREFIX}author_"
SHORTEST_KEY = 32  # characters
Signer = URLSafeTimedSerializer
EXPIRED_TOKEN = ProblemType("expired-token", 401, "The token of the author has expired")


class AuthorToken(NamedTuple):
    """A token of an author, and when it expires, in milliseconds."""

    token: str
    expires_at: int


class AuthorTokens:
    """Signs and reads the tokens of authors with the signer that `read_signer` gives."""

    def __init__(self, read_signer: Callable[[], Signer], lasts: timedelta) -> None:
        self._lasts = lasts
        self._read_signer = read_signer

    @classmethod
    def open(cls, path: Path, lasts: timedelta) -> Self:
        """With the key of a file.  Raises Misuse if there is none that only its owner and group can read."""
        return cls(SecretFile(path, _read_signer).read_current, lasts)

    def make(self, author_id: str, now: int) -> AuthorToken:
        """A token for an author, at a time in milliseconds."""
        signed = self._read_signer().dumps({"author": author_id})
        assert isinstance(signed, str)
        return AuthorToken(f"{AUTHOR_PREFIX}{signed}", now + round(1000 * self._lasts.total_seconds()))

    def read_author(self, token: str) -> str:
        """The author of a token.  Raises Refused for one that has expired, or that this key has not signed."""
        try:
            text, seconds = token.removeprefix(AUTHOR_PREFIX), round(self._lasts.total_seconds())
            signed = self._read_signer().loads(text, max_age=seconds)
            return str(signed["author"])
        except SignatureExpired:
            raise Refused(EXPIRED_TOKEN, "the token has expired: the platform makes a new one") from None
        except (BadSignature, KeyError, TypeError, UnicodeEncodeError):
            raise Refused(UNAUTHENTICATED, "the token is not signed with the key of this service") from None


def make_signer(key: str) -> Signer:
    """What signs tokens with a key."""
    options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    return URLSafeTimedSerializer(key, salt="neardup author", signer_kwargs=options)


def _read_signer(path: Path) -> Signer:
    """What signs tokens with the key of a file.  Raises Misuse."""
    try:
        key, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode
    except OSError as error:
        raise Misuse(f"{AUTHOR_KEY}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        key, mode = "", 0
    if len(key) < SHORTEST_KEY:
        raise Misuse(f"{AUTHOR_KEY}: {path} is no key that `neardup serve --new-author-key` made")
    if mode & stat.S_IROTH:
        raise Misuse(f"{AUTHOR_KEY}: every user can read {path}: chmod o-r, or make a new key")
    return make_signer(key)


def make_author_key(path: Path) -> None:
    """Write a new key to a file that only its owner can read.

    Raises Misuse if there is such a file, or it cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    except FileExistsError:
        raise Misuse(f"{AUTHOR_KEY}: {path} exists, and a new key ends every token: remove it first") from None
    except OSError as error:
        raise Misuse(f"{AUTHOR_KEY}: cannot write {path}: {error.strerror}") from error
