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
    """A table of text cells; `note` explains it."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def format_decimal(value: float | None) -> str:
    """Format with three decimals, rounded down, so that only 1 is shown as 1.000; None as an empty string."""
    # 1e-9: a value that floating point left just below a thousandth counts as that thousandth
    return "" if value is None else f"{floor(value * 1000 + 1e-9) / 1000:.3f}"


def format_interval(share: Mapping[str, Any]) -> str:
    return f"{format_decimal(share['low'])} - {format_decimal(share['high'])}"


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
            shown.add_row(*map(Text, row))
        console.print(shown)
