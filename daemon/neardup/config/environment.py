"""The environment variables NEARDUP_<SECTION>__<KEY>, each of which overrides a key of the configuration file."""

import os
from collections.abc import Collection, Iterator
from typing import Any

from neardup.errors import Misuse

PREFIX = "NEARDUP_"
FILE_VARIABLE = f"{PREFIX}CONFIG"  # names the configuration file
BETWEEN = "__"


def override(tables: dict[str, Any], sections: Collection[str]) -> None:
    """Put the values of the variables, which are texts, into the tables of a file.

    Raises Misuse for a variable of no section.
    """
    for name, value in _variables(sections):
        *tables_around, key = name.removeprefix(PREFIX).lower().split(BETWEEN)
        table = tables
        for part in tables_around:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise Misuse(f"{name}: {part} is no table")
        table[key] = value


def _variables(sections: Collection[str]) -> Iterator[tuple[str, str]]:
    """The names, in upper case, and the values of the variables, in the order of their names."""
    prefixes = tuple(f"{PREFIX}{section}{BETWEEN}".upper() for section in sections)
    for name, value in sorted(os.environ.items()):
        if name != FILE_VARIABLE and name.upper().startswith(PREFIX):
            if not name.upper().startswith(prefixes):
                raise Misuse(f"unknown variable {name}: write {PREFIX}<SECTION>{BETWEEN}<KEY>")
            yield name.upper(), value
