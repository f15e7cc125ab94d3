"""[languages.NAME]: adds a language to those that the package ships, or changes one."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict, replace

from neardup.config.section import FromText, Section, match_pattern
from neardup.core.languages import SHIPPED, LanguageEntry, Languages
from neardup.records import Language

MAX_LANGUAGES = 255  # arrays store the number of a language in a byte


def _parse_golden(golden: str) -> str:
    from neardup.core.text.normalize import tokenize  # noqa: PLC0415 - only a table with a golden text needs it

    if not tokenize(golden):
        raise ValueError("a golden text must have words")
    return golden


Name = Annotated[str, match_pattern(r"[A-Z][A-Z_]{1,30}", "a name of 2 to 31 letters A to Z or underscores")]
Code = Annotated[str, match_pattern(r"[a-z]{2,3}", "an ISO 639 code, two or three letters a to z")]
Script = Annotated[str, match_pattern(r"[A-Z][A-Za-z ]*", "the name of a script, such as Devanagari")]
Font = Annotated[
    str, match_pattern(r"[A-Za-z0-9][A-Za-z0-9 -]*", "the name of a font")
]  # without signs, because style sheets are made with it


class LanguageTable(Section, frozen=True, kw_only=True):
    """[languages.NAME]: a language; keys that are left out keep the values that the package ships."""

    codes: Annotated[
        Annotated[tuple[Code, ...], Meta(min_length=1)] | None,
        Meta(description="ISO 639 codes; the first is used in web pages and in Redis keys."),
    ] = None
    script: Annotated[Script | None, Meta(description="Name of the script, as in the names of the Noto fonts.")] = None
    direction: Annotated[
        Literal["ltr", "rtl"] | None, Meta(description="Direction of writing: `ltr`, or `rtl` for right to left.")
    ] = None
    fonts: Annotated[
        tuple[Font, ...] | None,
        Meta(description="Fonts of web pages, the best first; by default the Noto fonts of the script."),
    ] = None
    golden: Annotated[
        str | None,
        FromText(_parse_golden),
        Meta(
            description="Text whose fingerprints give the version of the language. It should contain the difficult "
            "characters of the script. A changed text means that stories of the language must be fingerprinted again."
        ),
    ] = None


def merge_names(tables: object) -> object:
    """Merge tables whose names differ only in case, under the name in upper case; environment variables use lower."""
    if not isinstance(tables, dict):
        return tables
    merged: dict[str, Any] = {}
    for name, table in tables.items():
        earlier = merged.get(name.upper())
        merged[name.upper()] = {**earlier, **table} if isinstance(earlier, dict) and isinstance(table, dict) else table
    return merged


def make_registry(tables: Mapping[str, LanguageTable]) -> Languages:
    """The registry of the shipped languages, with the additions and changes of these tables.  Raises ValueError."""
    entries = dict(SHIPPED)
    for name, table in tables.items():
        language = Language(name)
        given = {key: value for key, value in asdict(table).items() if value is not None}
        if (shipped := SHIPPED.get(language)) is not None:
            entries[language] = replace(shipped, **given)
        else:
            entries[language] = _add_language(language, given)
    if len(entries) > MAX_LANGUAGES:
        raise ValueError(f"{len(entries)} languages are more than {MAX_LANGUAGES}")
    return Languages(entries)


def _add_language(name: Language, given: dict[str, Any]) -> LanguageEntry:
    missing = [key for key in ("codes", "script", "golden") if key not in given]
    if missing:
        raise ValueError(f"{name} is not shipped with the package: it needs {' and '.join(missing)}")
    fonts = (f"Noto Serif {given['script']}", f"Noto Sans {given['script']}")
    return LanguageEntry(**({"direction": "ltr", "fonts": fonts} | given))


Tables = dict[Name, LanguageTable]
