"""Files of access tokens: TOML that holds the SHA-256 of each token, not the token, and what it permits.

A token is 256 random bits, so one round of SHA-256 protects it as well as a slow hash would.
"""

import hmac
import json
import os
import re
import secrets
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from neardup.errors import Misuse
from neardup.telemetry.log import log

PREFIX = "neardup_"  # lets scanners for leaked secrets recognise a token
DIGEST = re.compile(r"[0-9a-f]{64}")


def is_loopback(host: str) -> bool:
    """Whether HOST, a name or an address (IPv6 in brackets), is this machine alone, so that no token is needed."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Holder(Protocol):
    """The holder of a token, known by its digest."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the token, in hexadecimal digits."""


S = TypeVar("S")
T = TypeVar("T", bound=Holder)


class Entry(Struct, frozen=True):
    """The table of a token in a file, as it stands there."""

    name: str
    digest: str
    table: Mapping[str, Any]


class SecretFile(Generic[S]):
    """What a file of secrets says; it is read again when it changes."""

    def __init__(self, path: Path, read: Callable[[Path], S]) -> None:
        """Read the file.  Raises Misuse, as `read` does, if it cannot be read or is wrong."""
        self._path = path
        self._read = read
        self._version = _read_version(path)
        self._value = read(path)

    def read_current(self) -> S:
        """What it says now; what it said before, if it is damaged."""
        version = _read_version(self._path)
        if version == self._version:
            return self._value
        self._version = version
        try:
            self._value = self._read(self._path)
            log.info("a file of secrets was read again", file=str(self._path))
        except Misuse as error:
            log.error("a file of secrets cannot be read again, what it said before still holds", why=str(error))
        return self._value


class TokenFile(SecretFile[list[T]]):
    """The holders of the tokens of a file."""

    def holders(self) -> list[T]:
        """The holders on record now; those of before, if the file is damaged."""
        return self.read_current()

    def find(self, secret: str) -> T | None:
        """The holder of this token."""
        return match_token(self.holders(), secret)


def digest_of(secret: str) -> str:
    """The SHA-256 of a token, in hexadecimal digits."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def match_token(holders: Sequence[T], secret: str) -> T | None:
    """The holder of this token, among these."""
    digest, found = digest_of(secret), None
    for holder in holders:  # to the end: the time taken must not reveal which token is nearly right
        if hmac.compare_digest(holder.digest, digest):
            found = holder
    return found


def read_entries(path: Path, key: str) -> list[Entry]:
    """The entries of a file, which the configuration names as `key`.

    Raises Misuse, whose message says what is wrong.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misuse(f"{key}: cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"{key}: {path}: bad TOML: {error}") from error
    return [_parse_entry(path, key, name, table) for name, table in tables.items()]


def _parse_entry(path: Path, key: str, name: str, table: object) -> Entry:
    fields = table if isinstance(table, dict) else {}
    digest = fields.get("sha256")
    lists = [value for field, value in fields.items() if field != "sha256"]
    if not (isinstance(digest, str) and DIGEST.fullmatch(digest) and "rights" in fields and all(map(_is_list, lists))):
        needs = "sha256, 64 hexadecimal digits, and rights; each field but sha256 is a list of names"
        raise Misuse(f"{key}: {path}: [{name}] needs {needs}")
    return Entry(name, digest, fields)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def add_token(path: Path, key: str, name: str, fields: Mapping[str, Iterable[str]]) -> str:
    """Add a token to the file, which is made if there is none, and return its secret, which is kept nowhere else.

    `fields` are lists of names; the configuration names the file as `key`.  Raises Misuse if the name is taken.
    """
    if path.exists() and any(entry.name == name for entry in read_entries(path, key)):
        raise Misuse(f"--new-token: {path} has a token {name!r}: remove its lines first, or choose another name")
    secret = PREFIX + secrets.token_urlsafe(32)
    lines = [f"[{_quote(name)}]", f'sha256 = "{digest_of(secret)}"']
    lines += [f"{field} = [{', '.join(map(_quote, names))}]" for field, names in fields.items()]
    try:
        with open(path, "a", encoding="utf-8", opener=_open_private) as file:
            before = "\n" if file.tell() else ""  # the last line of a file that was edited may have no end
            file.write(before + "\n".join(lines) + "\n")
    except OSError as error:
        raise Misuse(f"{key}: cannot write {path}: {error.strerror}") from error
    return secret


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # a basic string of TOML


def _read_version(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o640)
