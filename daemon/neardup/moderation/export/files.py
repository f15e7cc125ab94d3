"""The text formats: CSV for spreadsheets and scripts, JSONL for programs."""

import csv
import json
from collections.abc import Iterable
from pathlib import Path

from neardup.moderation.export.guard import guarded
from neardup.moderation.export.pairs import COLUMNS, ExportRow

BOM = "\ufeff"


def write_csv(path: Path, pairs: Iterable[ExportRow], *, bom: bool = False) -> None:
    """RFC 4180, UTF-8, every text in quotes; no cell is one that a spreadsheet would run as a formula.

    With a byte order mark Excel knows the encoding, and shows every script.
    """
    with path.open("w", encoding="utf-8", newline="") as out:
        if bom:
            out.write(BOM)
        writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(COLUMNS)
        for pair in pairs:
            writer.writerow([_cell(value) for value in pair.values()])


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return guarded(value) if isinstance(value, str) else value


def write_jsonl(path: Path, pairs: Iterable[ExportRow]) -> None:
    """An object a line, UTF-8."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for pair in pairs:
            out.write(json.dumps(pair, ensure_ascii=False) + "\n")
