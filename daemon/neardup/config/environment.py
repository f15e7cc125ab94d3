"""The environment variables NEARDUP_<SECTION>__<KEY>, each of which overrides a key of the configuration file.

A list or a table is written as JSON, all else as it is.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, get_origin

from neardup.config.section import Section, parts, section_in, table_in
from neardup.errors import Misuse

PREFIX = "NEARDUP_"
FILE_VARIABLE = f"{PREFIX}CONFIG"  # names the configuration file
BETWEEN = "__"


def overridden(tables: Mapping[str, Any], model: type[Section]) -> dict[str, Any]:
    """The tables of a file, with the values of the variables for the fields of `model` in place of its own.

    Raises Misuse for a variable of no section, and for one that is not JSON.
    """
    given: dict[str, Any] = {}
    for name, value in _variables(model):
        *tables_around, key = name.removeprefix(PREFIX).lower().split(BETWEEN)
        table = given
        for part in tables_around:
            inner = table.setdefault(part, {})
            if not isinstance(inner, dict):
                raise Misuse(f"{name} is within {part}, which another variable gives as a whole")
            table = inner
        table[key] = _parsed(name, value, _type_of(model, (*tables_around, key)))
    return _merged(tables, given)


def _variables(model: type[Section]) -> Iterator[tuple[str, str]]:
    """The names, in upper case, and the values of the variables, in the order of their names."""
    sections = tuple(f"{PREFIX}{name}{BETWEEN}".upper() for name in model.settings)
    for name, value in sorted(os.environ.items()):
        if name != FILE_VARIABLE and name.upper().startswith(PREFIX):
            if not name.upper().startswith(sections):
                raise Misuse(f"unknown variable {name}: write {PREFIX}<SECTION>{BETWEEN}<KEY>")
            yield name.upper(), value


def _type_of(model: type[Section], keys: tuple[str, ...]) -> Any:
    """The type of the key at the end of these, in tables within tables; None for one that is unknown."""
    found: Any = model
    for key in keys:
        section, table = section_in(found), table_in(found)
        if section is not None and key in section.settings:
            found = section.settings[key].kind
        elif table is not None:  # the key is a name, such as that of a language
            found = table
        else:
            return None
    return found


def _parsed(name: str, value: str, kind: Any) -> Any:
    """The value of a variable: parsed as JSON if it is a list or a table, otherwise as it is."""
    if section_in(kind) is None and not any(get_origin(part) in {tuple, dict} for part in parts(kind)):
        return value
    try:
        return json.loads(value)
    except ValueError:
        section, key = name.removeprefix(PREFIX).lower().split(BETWEEN, 1)
        raise Misuse(f"{section}.{key.replace(BETWEEN, '.')}: {name} is not JSON: write it as JSON") from None


def _merged(tables: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tables)
    for key, value in over.items():
        own = merged.get(key)
        merged[key] = _merged(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return merged
