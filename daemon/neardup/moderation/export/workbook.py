"""XLSX: one sheet, streamed row by row."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.errors import Fatal
from neardup.moderation.export.table import ExportRow, Table

if TYPE_CHECKING:
    from xlsxwriter import Workbook  # type: ignore[import-untyped]
    from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]

MAX_ROWS = 1_048_575  # of a sheet, beside the header
WORKBOOK_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
ID_WIDTH, DEFAULT_WIDTH = 18, 14  # characters
REPLACED_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # XML forbids them


def write_xlsx(path: Path, rows: Iterable[ExportRow], table: Table) -> None:
    """Write a workbook of one sheet.  Ids are texts, since spreadsheets round numbers of more than 15 digits.

    Raises Fatal if there are more rows than a sheet holds, OSError if the file cannot be written.
    """
    from xlsxwriter.exceptions import FileCreateError  # type: ignore[import-untyped] # noqa: PLC0415 - it is optional

    try:
        _write(path, rows, table)
    except FileCreateError as error:
        raise error.args[0] from error  # the OSError that XlsxWriter wrapped


def _write(path: Path, rows: Iterable[ExportRow], table: Table) -> None:
    from xlsxwriter import Workbook  # noqa: PLC0415 - as above

    book = Workbook(path, WORKBOOK_OPTIONS)
    sheet = book.add_worksheet(table.rows)
    try:
        _write_rows(book, sheet, rows, table)
        book.close()
    except BaseException:  # to close the book would read back its temporary file, which may end within a character
        with suppress(OSError):
            sheet.row_data_fh.close()
        Path(sheet.row_data_filename).unlink(missing_ok=True)
        raise


def _write_rows(book: "Workbook", sheet: "Worksheet", rows: Iterable[ExportRow], table: Table) -> None:
    sheet.freeze_panes(1, 0)
    for n, column in enumerate(table.columns):
        width = ID_WIDTH if column in table.ids else table.widths.get(column, DEFAULT_WIDTH)
        sheet.set_column(n, n, width)
    sheet.write_row(0, 0, table.columns, book.add_format({"bold": True}))
    last = 0
    for last, row in enumerate(rows, 1):
        if last > MAX_ROWS:
            raise Fatal(f"an XLSX sheet holds {MAX_ROWS:,} {table.rows}: select fewer, or use another format")
        for n, (column, value) in enumerate(row.items()):
            _write_cell(sheet, last, n, str(value) if column in table.ids and value is not None else value)
    sheet.autofilter(0, 0, last, len(table.columns) - 1)


def _write_cell(sheet: "Worksheet", row: int, column: int, value: object) -> None:
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
