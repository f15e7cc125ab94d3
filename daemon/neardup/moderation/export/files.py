"""The text formats: CSV for spreadsheets and scripts, JSONL for programs."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from neardup.moderation.export.guard import guarded
from neardup.moderation.export.table import ExportRow, Table

BOM = "\ufeff"


def write_csv(path: Path, rows: Iterable[ExportRow], table: Table, *, bom: bool = False) -> None:
    """Write CSV by RFC 4180, in UTF-8, with every text quoted and guarded against spreadsheet formulas.

    Excel needs the byte order mark (`bom`) to recognise UTF-8.
    """
    with path.open("w", encoding="utf-8", newline="") as out:
        if bom:
            out.write(BOM)
        writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(table.columns)
        for row in rows:
            writer.writerow([_cell(value) for value in row.values()])


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return guarded(value) if isinstance(value, str) else value


def write_jsonl(path: Path, rows: Iterable[ExportRow]) -> None:
    """Write one JSON object per line, in UTF-8."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
