"""The formats of an export's rows: CSV for spreadsheets and scripts, JSONL for programs, Parquet, and XLSX.

The libraries of Parquet and XLSX are optional, and load when a file is written.

CSV is guarded against injection: no cell is run as a formula by a spreadsheet.  Excel, LibreOffice and Google Sheets
run a cell that begins with = + - or @, some also with the full-width forms.  They trim or skip different characters
before it: blanks, control characters, byte order marks, zero-width characters.  In locales with a decimal comma, Excel
splits rows at semicolons and line ends even inside quotes, and pasted text is split at tabs.  The text after each of
these characters is therefore guarded like a cell of its own.
"""

import csv
import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING
from zipfile import ZipFile

import msgspec

from neardup.errors import Fatal
from neardup.moderation.export.tables import BOOLEANS, FLOATS, IDS, INTEGERS, TIMES, ExportRow, Table

if TYPE_CHECKING:
    from pyarrow import Schema  # type: ignore[import-untyped]
    from xlsxwriter import Workbook  # type: ignore[import-untyped]
    from xlsxwriter.worksheet import Worksheet  # type: ignore[import-untyped]


BOM = "\ufeff"
SIGNS = frozenset("=+-@\u2212")  # LibreOffice also accepts U+2212, the minus sign
MAY_BE_FORMULA = re.compile(r"[^\w\s.,:!?()\u0900-\u0dff]|^[\t\r\n]")  # a fast test that most texts do not match
CELL_STARTS = re.compile(r"(?<=[;\t\r\n])")
IGNORED_CATEGORIES = frozenset("CMZ")  # Unicode categories: control, format and unassigned; marks; separators
ROWS_PER_GROUP = 10_000
MAX_ROWS = 1_048_575  # of a sheet, beside the header
WORKBOOK_OPTIONS = {
    "constant_memory": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
    "strings_to_numbers": False,
}
ID_WIDTH, DEFAULT_WIDTH = 18, 14  # characters
REPLACED_CHARACTERS = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # XML forbids them


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
            writer.writerow([_make_cell(value) for value in row.values()])


def _make_cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return guard_text(value) if isinstance(value, str) else value


def write_jsonl(path: Path, rows: Iterable[ExportRow]) -> None:
    """Write one JSON object per line, in UTF-8."""
    with path.open("wb") as out:
        out.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def guard_text(text: str) -> str:
    """The text with an apostrophe before each part that a spreadsheet could run, which makes it plain text."""
    if not MAY_BE_FORMULA.search(text):
        return text
    first, *rest = CELL_STARTS.split(text)
    prefix = "'" if _may_be_formula(text) or text.startswith(("\t", "\r", "\n")) else ""
    return prefix + first + "".join(f"'{part}" if _may_be_formula(part) else part for part in rest)


def _may_be_formula(text: str) -> bool:
    """Whether the first visible character other than a quote begins a formula."""
    for character in text:
        if character != '"' and unicodedata.category(character)[0] not in IGNORED_CATEGORIES:
            return unicodedata.normalize("NFKC", character)[0] in SIGNS
    return False


def write_parquet(path: Path, rows: Iterable[ExportRow], table: Table, *, with_names: bool = False) -> None:
    """Write typed columns: times are in milliseconds and UTC, unknown values are null.

    Ids are 64-bit integers; those of stories are texts `with_names`.
    """
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second
    from pyarrow import parquet  # noqa: PLC0415

    schema = make_schema(table, with_names=with_names)
    source = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as out:
        while group := [_type_values(row, table, with_names=with_names) for row in islice(source, ROWS_PER_GROUP)]:
            out.write_table(pa.Table.from_pylist(group, schema))


def _type_values(row: ExportRow, table: Table, *, with_names: bool) -> ExportRow:
    typed = type_times(row)
    if with_names:
        typed |= {column: None if (shown := row[column]) is None else str(shown) for column in table.story_ids}
    return typed


def make_schema(table: Table, *, with_names: bool = False) -> "Schema":
    """The typed columns of an export.  The ids of stories are integers, or texts `with_names`."""
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second

    def type_of(column: str) -> "pa.DataType":
        if column in TIMES:
            return pa.timestamp("ms", tz="UTC")
        if column in BOOLEANS:
            return pa.bool_()
        if column in table.story_ids:
            return pa.string() if with_names else pa.int64()
        if column in INTEGERS | IDS:
            return pa.int64()
        return pa.float64() if column in FLOATS else pa.string()

    return pa.schema([(column, type_of(column)) for column in table.columns])


def type_times(row: ExportRow) -> ExportRow:
    """The row with its times as such."""
    return {
        column: datetime.fromisoformat(value) if column in TIMES and value else value for column, value in row.items()
    }


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
    except BaseException as error:  # to close the book would read back a temporary file that may end in a character
        with suppress(OSError):
            sheet.row_data_fh.close()
        Path(sheet.row_data_filename).unlink(missing_ok=True)
        _close_archive(error)
        raise


def _close_archive(error: BaseException) -> None:
    """Close the archive that XlsxWriter left open: Python would when it is collected, and print that this failed."""
    for frame, _ in walk_tb((error.__context__ or error).__traceback__):
        if isinstance(archive := frame.f_locals.get("xlsx_file"), ZipFile):
            with suppress(OSError):
                archive.close()


def _write_rows(book: "Workbook", sheet: "Worksheet", rows: Iterable[ExportRow], table: Table) -> None:
    sheet.freeze_panes(1, 0)
    for n, column in enumerate(table.columns):
        width = ID_WIDTH if column in IDS else table.widths.get(column, DEFAULT_WIDTH)
        sheet.set_column(n, n, width)
    sheet.write_row(0, 0, table.columns, book.add_format({"bold": True}))
    last = 0
    for last, row in enumerate(rows, 1):
        if last > MAX_ROWS:
            raise Fatal(f"an XLSX sheet holds {MAX_ROWS:,} {table.rows}: select fewer, or use another format")
        for n, (column, value) in enumerate(row.items()):
            _write_cell(sheet, last, n, str(value) if column in IDS and value is not None else value)
    sheet.autofilter(0, 0, last, len(table.columns) - 1)


def _write_cell(sheet: "Worksheet", row: int, column: int, value: object) -> None:
    match value:
        case bool():
            sheet.write_boolean(row, column, value)
        case int() | float():
            sheet.write_number(row, column, value)
        case str():
            sheet.write_string(row, column, _make_cell_text(value))


def _make_cell_text(text: str) -> str:
    """A text as a cell can hold it.  XlsxWriter itself truncates long texts and escapes control characters."""
    # XlsxWriter would write <r>...</r> unescaped, as rich text; a space in front prevents that
    return f" {text}" if text.startswith("<r>") else text.translate(REPLACED_CHARACTERS)
