"""Permissions as people write them: the fields of a form, the options of a command, the rows of a CSV file."""

import csv
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from neardup.errors import Misuse
from neardup.ledger import permissions, similarities, transaction
from neardup.ledger.permissions import Grant, PermissionRefused
from neardup.source.parse import make_printable, parse_id, parse_time, refuse_work

FIELDS = ("granted_by", "story_id", "serial", "catalogue", "granted_to", "licence", "since", "until", "note")
SHOWN_ERRORS = 20
T = TypeVar("T")


class WrongField(Misuse):
    """A field that cannot be read; the message names it."""


def parse_grant(fields: Mapping[str, str | None]) -> Grant:
    """The permission that these texts describe, by the names FIELDS; an empty one is not given.  Raises WrongField."""
    given = {name: make_printable(fields.get(name)) for name in FIELDS}
    return Grant(
        given["granted_by"],
        _parse_field("story_id", _parse_story_id, given["story_id"]),
        given["catalogue"],
        given["granted_to"],
        given["licence"],
        given["note"] or "",
        _parse_field("since", _time, given["since"]),
        _parse_field("until", _time, given["until"]),
        given["serial"],
    )


def _parse_field(name: str, parse: Callable[[str], T], value: str | None) -> T | None:
    try:
        return None if value is None else parse(value)
    except ValueError as error:
        raise WrongField(f"{name}: {error}") from None


def _parse_story_id(value: str) -> int:
    refuse_work(value)
    return parse_id(value)


def _time(value: str) -> int:
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{value!r} is not an RFC 3339 time") from None


def import_csv(db: sqlite3.Connection, path: Path, entered_by: str) -> int:
    """Enter the permissions of a CSV file with a header of FIELDS, in one transaction; returns how many they are.

    Raises Misuse, which names each wrong row by its line, if any is wrong; then nothing of the file is stored.
    """
    wrong, entered = list[str](), 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file, transaction(db):
            rows = csv.DictReader(file, strict=True)
            _refuse_header(path, rows.fieldnames or ())
            for row in rows:
                try:
                    if None in row or None in row.values():
                        raise WrongField("has not as many fields as the header")
                    permissions.put(db, parse_grant(row), entered_by)
                    entered += 1
                except (WrongField, PermissionRefused) as error:
                    wrong.append(f"line {rows.line_num}: {error}")
            if wrong:
                more = f"; and {len(wrong) - SHOWN_ERRORS:,} more" if len(wrong) > SHOWN_ERRORS else ""
                raise Misuse(f"{path}: nothing was stored: {'; '.join(wrong[:SHOWN_ERRORS])}{more}")
            similarities.refresh(db)
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: nothing was stored: it is no CSV file in UTF-8: {error}") from None
    return entered


def _refuse_header(path: Path, names: Sequence[str]) -> None:
    if unknown := [name for name in names if name not in FIELDS]:
        raise Misuse(f"{path}: unknown column {unknown[0]!r}: the columns are {', '.join(FIELDS)}")
    if len(set(names)) < len(names) or not {"granted_by", "catalogue"} & set(names):
        raise Misuse(f"{path}: the first line names columns, each once, of {', '.join(FIELDS)}")
