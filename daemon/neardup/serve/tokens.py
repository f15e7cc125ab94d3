"""The tokens of the HTTP service, and the rights of each."""

import re
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from neardup.errors import Misuse
from neardup.http import tokens
from neardup.http.tokens import TokenFile, read_entries

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
KEY = "serve.tokens"


class Right(StrEnum):
    """What a token permits."""

    CHECK = "check"  # check and compare texts, and read what is on record
    STORE = "store"
    FORGET = "forget"
    AUTHORS = "authors"  # make tokens for authors, and read what authors may read
    COMPLAIN = "complain"  # make complaints, read them, and answer to them
    PERMIT = "permit"  # enter and revoke permissions


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
    return [Token(entry.name, entry.digest, parse_rights(entry.table["rights"])) for entry in read_entries(path, KEY)]


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
    return tokens.add_token(path, KEY, name, {"rights": [right for right in Right if right in rights]})
