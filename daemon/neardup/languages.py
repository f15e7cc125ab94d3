"""The language registry: the languages that the package ships, and those that a configuration adds."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from neardup.records import Language


@dataclass(frozen=True, slots=True)
class LanguageEntry:
    """One language.

    The first of `codes` (ISO 639, lower case) is the one in web pages and in the keys of the compact Redis layout.
    `fonts` are CSS families, the best first.  The fingerprints of the text `golden` give the version of the language.
    """

    codes: tuple[str, ...]
    script: str
    direction: Literal["ltr", "rtl"]
    fonts: tuple[str, ...]
    golden: str

    @property
    def code(self) -> str:
        """The code in web pages and keys."""
        return self.codes[0]


class Languages(Mapping[Language, LanguageEntry]):
    """The languages that a process knows, by name.  Immutable.  Raises ValueError for a code of two languages."""

    def __init__(self, entries: Mapping[Language, LanguageEntry]) -> None:
        self._entries = dict(entries)
        self._by_word: dict[str, Language] = {name.upper(): name for name in entries}
        for name, entry in entries.items():
            for code in entry.codes:
                other = self._by_word.setdefault(code.upper(), name)
                if other != name:
                    raise ValueError(f"{name}: the code {code!r} is that of {other}")

    def __getitem__(self, name: Language) -> LanguageEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[Language]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def find(self, word: str) -> Language:
        """A language's name or code, in any case.  Raises ValueError."""
        try:
            return self._by_word[word.strip().upper()]
        except KeyError:
            raise ValueError(f"unknown language {word!r}") from None

    @property
    def codes(self) -> dict[Language, str]:
        """Each language's code in web pages and keys."""
        return {name: entry.code for name, entry in self._entries.items()}


def _shipped() -> Languages:
    tables = tomllib.loads((files("neardup") / "languages.toml").read_text(encoding="utf-8"))
    return Languages(
        {
            Language(name): LanguageEntry(**{**table, "codes": tuple(table["codes"]), "fonts": tuple(table["fonts"])})
            for name, table in tables.items()
        }
    )


SHIPPED = _shipped()
LANGUAGES = tuple(SHIPPED)  # in the order in which a new ledger numbers them
