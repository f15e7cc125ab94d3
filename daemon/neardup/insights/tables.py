"""The tables of an evaluation and of an audit: how their figures are formatted, and how they are printed."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

ALL = "all"  # the row of all languages together
Facts = dict[str, Any]
SHOWN_PAIRS = 20


class Table(Struct, frozen=True):
    """A table of values, which `show` formats; `note` explains it."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def format_cell(value: object) -> str:
    """A value as text; a float with three decimals, rounded down, so that only 1 is shown as 1.000."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            # 1e-9: a value that floating point left just below a thousandth counts as that thousandth
            return f"{floor(value * 1000 + 1e-9) / 1000:.3f}"
        case list():
            return ", ".join(map(str, value))
    return str(value)


def format_interval(share: Mapping[str, Any]) -> str:
    return f"{format_cell(share['low'])} - {format_cell(share['high'])}"


def show(console: Console, tables: Iterable[Table]) -> None:
    """Print tables on a terminal."""
    for table in tables:
        console.print(f"\n[bold]{table.title}[/]")
        if table.note:
            console.print(table.note, style="dim")
        shown = RichTable(header_style="bold", box=None, padding=(0, 1, 0, 0))
        for n, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if n else "left")
        for row in table.rows:
            shown.add_row(*(Text(format_cell(cell)) for cell in row))
        console.print(shown)
