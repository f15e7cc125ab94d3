"""Reads config.toml, whose keys environment variables NEARDUP_<SECTION>__<KEY> override.

A value of a variable is a text, from which its key makes a value as from one of the file.  Secrets belong into
variables: `list_exposed_secrets` says which of the file every user of the machine can read.
"""

import os
import stat
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qs, urlsplit

from msgspec import Meta, field
from msgspec.structs import asdict, replace

from neardup.config.detection import Detection
from neardup.config.section import FromText, Section, Wrong, describe_fault, list_faults, match_pattern, read
from neardup.config.sections import (
    Content,
    Export,
    Extract,
    Index,
    Ledger,
    Meaning,
    Metrics,
    Reference,
    Review,
    Run,
    Serve,
    Source,
    Webhook,
)
from neardup.core.languages import SHIPPED, LanguageEntry, Languages
from neardup.errors import Misuse
from neardup.records import Language

# Languages: those that the package ships, and what [languages.NAME] adds and changes

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


# The whole, the file and the variables

VARIABLE_PREFIX = "NEARDUP_"
FILE_VARIABLE = f"{VARIABLE_PREFIX}CONFIG"  # names the configuration file
BETWEEN = "__"
S = TypeVar("S", bound=Section)


class Config(Section, frozen=True, kw_only=True):
    """The whole configuration, one key a section."""

    source: Source
    content: Content
    extract: Extract = Extract()
    reference: Reference | None = None
    index: Index = Index()
    ledger: Ledger = Ledger()
    languages: Annotated[
        Tables, Meta(description="Languages to add to those that the package ships, or to change.")
    ] = field(default_factory=dict)
    detection: Detection = Detection()
    run: Run = Run()
    meaning: Meaning | None = None
    metrics: Metrics = Metrics()
    review: Review = Review()
    serve: Serve = Serve()
    webhook: Webhook = Webhook()
    export: Export = Export()

    @cached_property
    def registry(self) -> Languages:
        """The languages that the package ships and those of [languages]."""
        return make_registry(self.languages)

    @classmethod
    def prepare(cls, table: dict[str, Any]) -> dict[str, Any]:
        """Replace the names and codes in [detection.LANGUAGE] by the names of registered languages."""
        table = {**table, "languages": merge_names(table.get("languages", {}))}
        detection = table.get("detection")
        if not isinstance(detection, dict):
            return table
        try:
            find = make_registry(read(Tables, table["languages"])).find
        except ValueError:  # of [languages], which is reported as such
            return table
        named = dict[str, Any]()
        try:
            for key, value in detection.items():
                name = find(key) if isinstance(value, dict) else key
                named[name] = {**named.get(name, {}), **value} if isinstance(value, dict) else value
        except ValueError as error:
            raise Wrong([(("detection",), str(error))]) from None
        return {**table, "detection": named}

    def __post_init__(self) -> None:
        try:
            make_registry(self.languages)
        except ValueError as error:
            raise ValueError(f"languages: {error}") from None


def load(path: Path) -> Config:
    """Read and validate the configuration.  Relative paths in it are relative to the folder of the file.

    Raises Misuse, whose message names every wrong key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misuse(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: bad TOML: {error}") from error
    _override(tables, Config.__struct_fields__)
    try:
        config: Config = read(Config, tables)
        return _anchor_paths(config, path.parent.absolute())
    except ValueError as error:
        raise Misuse("; ".join(f"{path}: {describe_fault(fault)}" for fault in list_faults(error))) from None


def _anchor_paths(section: S, folder: Path) -> S:
    """Make every relative path of a section and of those in it absolute, starting from `folder`."""
    anchored = dict[str, Any]()
    for name in section.__struct_fields__:
        match getattr(section, name):
            case Path() as path:
                anchored[name] = folder / path
            case Section() as inner:
                anchored[name] = _anchor_paths(inner, folder)
    if isinstance(section, Content):
        scheme, _, rest = section.url.partition(":")
        if scheme in ("file", "texts"):
            anchored["url"] = f"{scheme}:{folder / rest.removeprefix('//')}"
    return replace(section, **anchored) if anchored else section


def _override(tables: dict[str, Any], sections: Collection[str]) -> None:
    """Put the values of the variables, which are texts, into the tables of a file.

    Raises Misuse for a variable of no section.
    """
    for name, value in _list_variables(sections):
        *tables_around, key = name.removeprefix(VARIABLE_PREFIX).lower().split(BETWEEN)
        table = tables
        for part in tables_around:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise Misuse(f"{name}: {part} is no table")
        table[key] = value


def _list_variables(sections: Collection[str]) -> Iterator[tuple[str, str]]:
    """The names, in upper case, and the values of the variables, in the order of their names."""
    prefixes = tuple(f"{VARIABLE_PREFIX}{section}{BETWEEN}".upper() for section in sections)
    for name, value in sorted(os.environ.items()):
        if name != FILE_VARIABLE and name.upper().startswith(VARIABLE_PREFIX):
            if not name.upper().startswith(prefixes):
                raise Misuse(f"unknown variable {name}: write {VARIABLE_PREFIX}<SECTION>{BETWEEN}<KEY>")
            yield name.upper(), value


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # a variable overrides it, or else `load` refused it
        return "@" in url
    return bool(parts.password or "password" in parse_qs(parts.query))


SECRETS: dict[tuple[str, str], Callable[[str], bool]] = {
    ("index", "url"): _has_password,
    ("review", "token"): bool,
    ("export", "webhook"): bool,  # anyone who knows its path can post to it
    ("review", "webhook"): bool,  # likewise
    ("webhook", "flags"): bool,
    ("webhook", "secrets"): bool,
    ("meaning", "key"): bool,
}


def list_exposed_secrets(path: Path) -> list[str]:
    """Return the keys that hold a secret in a configuration file which every user of the machine can read."""
    if not path.stat().st_mode & stat.S_IROTH:
        return []
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        f"{section}.{key}"
        for (section, key), is_secret in SECRETS.items()
        if is_secret(str(tables.get(section, {}).get(key) or ""))
    ]
