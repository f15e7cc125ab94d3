"""XLSX: one sheet of pairs, streamed row by row."""

from collections.abc import Iterable
from pathlib import Path

from xlsxwriter import Workbook  # type: ignore[import-untyped]
from xlsxwriter.exceptions import FileCreateError  # type: ignore[import-untyped]
from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

from neardup.errors import Fatal
from neardup.moderation.export.pairs import COLUMNS, IDS, ExportRow

MAX_ROWS = 1_048_575  # of a sheet, beside the header
WORKBOOK_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
WIDTHS = {"kind": 9, "language": 12, "story_title": 40, "matched_title": 40} | dict.fromkeys(IDS, 18)  # characters
DEFAULT_WIDTH = 14
REPLACED_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # XML forbids them


def write_xlsx(path: Path, pairs: Iterable[ExportRow]) -> None:
    """Write a workbook of one sheet.  Ids are texts, since spreadsheets round numbers of more than 15 digits.

    Raises Fatal if there are more pairs than a sheet holds, OSError if the file cannot be written.
    """
    try:
        _write(path, pairs)
    except FileCreateError as error:
        raise error.args[0] from error  # the OSError that XlsxWriter wrapped


def _write(path: Path, pairs: Iterable[ExportRow]) -> None:
    with Workbook(path, WORKBOOK_OPTIONS) as book:
        sheet = book.add_worksheet("pairs")
        sheet.freeze_panes(1, 0)
        for n, column in enumerate(COLUMNS):
            sheet.set_column(n, n, WIDTHS.get(column, DEFAULT_WIDTH))
        sheet.write_row(0, 0, COLUMNS, book.add_format({"bold": True}))
        row = 0
        for row, pair in enumerate(pairs, 1):
            if row > MAX_ROWS:
                raise Fatal(f"an XLSX sheet holds {MAX_ROWS:,} pairs: select fewer, or use another format")
            for n, (column, value) in enumerate(pair.items()):
                _write_cell(sheet, row, n, str(value) if column in IDS and value is not None else value)
        sheet.autofilter(0, 0, row, len(COLUMNS) - 1)


def _write_cell(sheet: Worksheet, row: int, column: int, value: object) -> None:
    match value:
        case bool():
            sheet.write_boolean(row, column, value)
        case int() | float():
            sheet.write_number(row, column, value)
        case str():
            sheet.write_string(row, column, _cell_text(value))


def _cell_text(text: str) -> str:
    """A text as a cell can hold it.  XlsxWriter itself truncates long texts and escapes control characters."""
    # XlsxWriter would write <r>...</r> unescaped, as rich text; a space in front prevents that
    return f" {text}" if text.startswith("<r>") else text.translate(REPLACED_CHARACTERS)
