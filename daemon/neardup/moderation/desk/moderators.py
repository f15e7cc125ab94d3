"""Who may open the desk: the moderators of a file, or any person who has the desk's one token and enters a name.

What people type, names and notes, is cleaned of characters that cannot be seen.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from neardup.config import Config
from neardup.core.languages import Languages
from neardup.errors import Misuse, NeardupError
from neardup.http import tokens
from neardup.http.tokens import Entry, TokenFile, digest_of, is_loopback, read_entries
from neardup.records import Language

NAME_COOKIE = "neardup_name"
MAX_NAME_LENGTH = 60  # characters
MAX_NOTE_LENGTH = 2_000
JOINERS = "\u200c\u200d"  # zero-width (non-)joiners, which names in many scripts need
LOCAL_PATH = re.compile(r"/(?![/\\])[^\s\\]*")
KEY = "review.moderators"


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
