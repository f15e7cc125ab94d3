"""The registry of languages: those shipped with the package, and those that a configuration adds."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from neardup.records import Language

# RFC 5646, section 2.1: a language of ISO 639, then what narrows it: script, region, variants, extensions, private use.
TAG = re.compile(
    r"([a-z]{2,3})(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|[0-9]{3}))?(?:[-_](?:[0-9a-z]{5,8}|[0-9][0-9a-z]{3}))*"
    r"(?:[-_][0-9a-wyz](?:[-_][0-9a-z]{2,8})+)*(?:[-_]x(?:[-_][0-9a-z]{1,8})+)?",
    re.IGNORECASE | re.ASCII,
)


class LanguageEntry(Struct, frozen=True):
    """One language.

    The first of `codes` (ISO 639, lower case) is used in web pages and in the keys of the compact Redis layout.
    `fonts` are CSS font families, the best first.  The fingerprints of the text `golden` determine the language's
    version.
    """

    codes: tuple[str, ...]
    script: str
    direction: Literal["ltr", "rtl"]
    fonts: tuple[str, ...]
    golden: str

    @property
    def code(self) -> str:
        """The code used in web pages and keys."""
        return self.codes[0]


class Languages(Mapping[Language, LanguageEntry]):
    """The languages known to a process, by name.  Immutable.  Raises ValueError if two languages share a code."""

    def __init__(self, entries: Mapping[Language, LanguageEntry]) -> None:
        self._entries = dict(entries)
        self._hash = hash(tuple(entries.items()))
        self._by_word: dict[str, Language] = {name.upper(): name for name in entries}
        for name, entry in entries.items():
            for code in entry.codes:
                other = self._by_word.setdefault(code.upper(), name)
                if other != name:
                    raise ValueError(f"{name}: the code {code!r} belongs to {other}")

    def __getitem__(self, name: Language) -> LanguageEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[Language]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return self._hash

    def find(self, word: str) -> Language:
        """The language with this name or code, or of this language tag, in any case.

        A tag is one of RFC 5646, such as `en-IN` and `hi-Deva-IN`, with `_` in place of `-` as well (Unicode CLDR).
        Raises ValueError, which names those that are known.
        """
        word = word.strip()
        tag = TAG.fullmatch(word)
        try:
            return self._by_word[(tag[1] if tag else word).upper()]
        except KeyError:
            known = ", ".join(f"{name.title()} ({code})" for name, code in self.codes.items())
            raise ValueError(f"unknown language {word!r}; known are {known}") from None

    @property
    def codes(self) -> dict[Language, str]:
        """Each language's code used in web pages and keys."""
        return {name: entry.code for name, entry in self._entries.items()}


_TABLES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
PINNED = {Language(name): str(table.pop("digest")) for name, table in _TABLES.items()}  # digests of the golden texts
SHIPPED = Languages(
    {
        Language(name): LanguageEntry(**{**table, "codes": tuple(table["codes"]), "fonts": tuple(table["fonts"])})
        for name, table in _TABLES.items()
    }
)
LANGUAGES = tuple(SHIPPED)  # in the order of their numbers in a new ledger
