"""The columns of an export, with what the formats need to know about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ExportRow = dict[str, Any]  # the columns of a table, in their order; None if a value is unknown


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of an export by name, in their order; those in none of the sets are texts.

    `rows` is what the rows are, in the plural.  `widths` are in characters, for spreadsheets.
    """

    rows: str
    columns: tuple[str, ...]
    ids: frozenset[str]
    times: frozenset[str]
    floats: frozenset[str]
    integers: frozenset[str]
    booleans: frozenset[str]
    widths: Mapping[str, int]
