"""The tokens of the HTTP service: a TOML file that holds a digest, not the token, and the rights of each.

A token is 256 random bits, so one round of SHA-256 protects it as well as a slow hash would.
"""

import hmac
import os
import re
import secrets
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import structlog

from neardup.errors import Misuse

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PREFIX = "neardup_"  # lets scanners for leaked secrets recognise a token
DIGEST = re.compile(r"[0-9a-f]{64}")

log = structlog.get_logger()


class Right(StrEnum):
    """What a token permits."""

    CHECK = "check"  # check and compare texts, and read what is on record
    STORE = "store"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Token:
    """A token by the SHA-256 of its secret, in hexadecimal digits."""

    name: str
    digest: str
    rights: frozenset[Right]


class Tokens:
    """The tokens of a file, which is read again when it changes."""

    def __init__(self, path: Path) -> None:
        """Read the file.  Raises Misuse if it cannot be read, or is wrong."""
        self._path = path
        self._version = _version(path)
        self._tokens = read_tokens(path)

    def find(self, secret: str) -> Token | None:
        """The token with this secret."""
        self._read_again()
        digest, found = sha256(secret.encode()).hexdigest(), None
        for token in self._tokens:  # to the end: the time taken must not tell which token is nearly right
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def _read_again(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version
        try:
            self._tokens = read_tokens(self._path)
            log.info("the tokens were read again", tokens=len(self._tokens))
        except Misuse as error:
            log.error("the tokens cannot be read again, the former ones still hold", why=str(error))


def _version(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file.  Raises Misuse, whose message names what is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misuse(f"serve.tokens: cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"serve.tokens: {path}: bad TOML: {error}") from error
    return [_token(path, name, table) for name, table in tables.items()]


def _token(path: Path, name: str, table: object) -> Token:
    entry = table if isinstance(table, dict) else {}
    digest, rights = entry.get("sha256"), entry.get("rights")
    if not (isinstance(digest, str) and DIGEST.fullmatch(digest) and isinstance(rights, list)):
        raise Misuse(f"serve.tokens: {path}: [{name}] needs sha256, 64 hexadecimal digits, and rights, a list")
    return Token(name, digest, rights_of(rights))


def rights_of(names: list[str]) -> frozenset[Right]:
    """The rights with these names.  Raises Misuse."""
    try:
        return frozenset(map(Right, names))
    except ValueError:
        raise Misuse(f"rights: {', '.join(map(str, names))}: a right is one of {', '.join(Right)}") from None


def new_token(path: Path, name: str, rights: frozenset[Right]) -> str:
    """Add a token to the file, which is made if there is none, and return its secret, which is kept nowhere else.

    Raises Misuse for a name that is not one, or is taken.
    """
    if not NAME.fullmatch(name):
        raise Misuse(f"--new-token: {name!r}: a name has up to 64 letters, digits, hyphens and underscores")
    if path.exists() and any(token.name == name for token in read_tokens(path)):
        raise Misuse(f"--new-token: {path} has a token {name!r}: remove its lines first, or choose another name")
    secret = PREFIX + secrets.token_urlsafe(32)
    listed = ", ".join(f'"{right}"' for right in Right if right in rights)
    entry = f'[{name}]\nsha256 = "{sha256(secret.encode()).hexdigest()}"\nrights = [{listed}]\n\n'
    try:
        with open(path, "a", encoding="utf-8", opener=_private) as file:
            file.write(entry)
    except OSError as error:
        raise Misuse(f"serve.tokens: cannot write {path}: {error.strerror}") from error
    return secret


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o640)
