"""[languages.NAME]: languages that the package does not ship, or other values for one that it does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from neardup.config.section import Section
from neardup.languages import SHIPPED, LanguageEntry, Languages
from neardup.records import Language

MOST = 255  # arrays carry a language's number in a byte


def _with_words(golden: str) -> str:
    if not golden.strip():
        raise ValueError("a golden text has words")
    return golden


Name = Annotated[str, Field(pattern=r"^[A-Z][A-Z_]{1,30}$")]
Code = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
Font = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 -]*$")]  # they are put into style sheets


class LanguageTable(Section):
    """[languages.NAME]: what is left out is as the package ships it."""

    codes: Annotated[tuple[Code, ...], Field(min_length=1)] | None = Field(
        default=None, description="ISO 639 codes; the first is used in web pages and in Redis keys."
    )
    script: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z ]*$")] | None = Field(
        default=None, description="Name of the script, as in the names of the Noto fonts."
    )
    direction: Literal["ltr", "rtl"] | None = Field(
        default=None, description="Direction of writing: `ltr`, or `rtl` for right to left."
    )
    fonts: tuple[Font, ...] | None = Field(
        default=None, description="Fonts of web pages, the best first; by default the Noto fonts of the script."
    )
    golden: Annotated[str, AfterValidator(_with_words)] | None = Field(
        default=None,
        description="Text whose fingerprints are the language's version. It should hold what the script makes "
        "difficult. A changed text means that stories of the language must be fingerprinted again.",
    )


def by_name(tables: Any) -> Any:
    """Tables under names in any case -> under names in upper case, merged: variables of the environment are lower."""
    if not isinstance(tables, dict):
        return tables
    merged: dict[str, Any] = {}
    for name, table in tables.items():
        before = merged.get(name.upper())
        merged[name.upper()] = {**before, **table} if isinstance(before, dict) and isinstance(table, dict) else table
    return merged


def registry(tables: Mapping[str, LanguageTable]) -> Languages:
    """The shipped languages with what these tables add and change.  Raises ValueError."""
    entries = dict(SHIPPED)
    for key, table in tables.items():
        name = Language(key)
        given = table.model_dump(exclude_none=True)
        if (shipped := SHIPPED.get(name)) is not None:
            entries[name] = replace(shipped, **given)
        else:
            entries[name] = _added(name, given)
    if len(entries) > MOST:
        raise ValueError(f"{len(entries)} languages are more than {MOST}")
    return Languages(entries)


def _added(name: Language, given: dict[str, Any]) -> LanguageEntry:
    missing = [key for key in ("codes", "script", "golden") if key not in given]
    if missing:
        raise ValueError(f"{name} is not shipped with the package: it needs {' and '.join(missing)}")
    fonts = (f"Noto Serif {given['script']}", f"Noto Sans {given['script']}")
    return LanguageEntry(**({"direction": "ltr", "fonts": fonts} | given))
