"""Documents that are the rows of a table: a CSV, TSV, JSONL or Parquet file with a column of texts."""

import csv
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from neardup.languages import SHIPPED
from neardup.records import Dead, Language
from neardup.source.documents import BadDocument, Document
from neardup.source.manifest import FileReader
from neardup.source.parquet import open_parquet, parquet_rows
from neardup.source.rows import Row, csv_rows, jsonl_rows
from neardup.source.spool import Spool
from neardup.source.table_columns import LANGUAGES, TEXTS, Columns, choose_columns

CSV, JSONL, PARQUET = (".csv", ".tsv"), (".jsonl", ".ndjson"), ".parquet"
ENDINGS = (*CSV, *JSONL, PARQUET)
LONGEST_CELL = 100_000_000  # characters; the library's own limit is 131,072


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read: its file, and what messages call it.

    In the names of its rows, `prefix` stands before their ids.
    """

    file: Path
    name: str
    prefix: str = ""


async def table_documents(
    table: Table, wanted: Columns, language: Language | None, spool: Spool
) -> AsyncIterator[Document | BadDocument]:
    """The rows of a table, named by their ids, or by their numbers if there are none; their texts go to the spool.

    Raises Misuse if the table lacks a column or cannot be read.
    """
    csv.field_size_limit(LONGEST_CELL)
    columns: Columns | None = None
    number = 0
    async for row in _rows(table, wanted):
        number += 1
        place = f"{table.name}, row {number}"
        if row.error:
            yield BadDocument(place, Dead.BAD_ROW, row.error)
            continue
        columns = columns or choose_columns(table.name, list(row.values), wanted)
        try:
            text, row_language = _text(row.values, columns), language or _language(row.values, columns)
        except _BadCell as bad:
            yield BadDocument(place, bad.reason, str(bad))
            continue
        name = _id(row.values, columns) or f"row {number}"
        yield Document(f"{table.prefix}{name}", spool.add(text.encode("utf-8", "replace")), row_language)


def _rows(table: Table, wanted: Columns) -> AsyncIterator[Row]:
    ending = table.file.suffix.lower()
    if ending == PARQUET:
        file = open_parquet(table.file, table.name)
        columns = choose_columns(table.name, [name.strip().lower() for name in file.schema_arrow.names], wanted)
        chosen = {column for column in (columns.text, columns.id, columns.language) if column is not None}
        return parquet_rows(file, table.name, columns=chosen)
    reader = FileReader(table.file, table.name)
    return jsonl_rows(reader) if ending in JSONL else csv_rows(reader, table.name, columns=None)


class _BadCell(ValueError):
    """Why a row has no text to compare."""

    def __init__(self, reason: Dead, error: str) -> None:
        super().__init__(error)
        self.reason = reason


def _text(values: Mapping[str, object], columns: Columns) -> str:
    assert columns.text is not None
    text = values.get(columns.text)
    if not isinstance(text, str):
        raise _BadCell(Dead.BAD_ROW, f"its {columns.text} is not a text")
    return text


def _id(values: Mapping[str, object], columns: Columns) -> str:
    value = None if columns.id is None else values.get(columns.id)
    return "" if value is None else str(value).strip()


def _language(values: Mapping[str, object], columns: Columns) -> Language | None:
    value = values.get(columns.language or LANGUAGES[0])  # the first row of a JSONL file may lack it
    if value is None or not str(value).strip():
        return None
    try:
        return SHIPPED.find(str(value))
    except ValueError as error:
        raise _BadCell(Dead.BAD_LANGUAGE, f"{error}; --language compares it all the same") from None


def ending_of(head: bytes, wanted: Columns) -> str:
    """The ending that fits the beginning of a file without a name: that of a table, or .txt for a single text."""
    line = head.lstrip(b"\xef\xbb\xbf \r\n\t").partition(b"\n")[0].decode("utf-8", "replace")
    if head.startswith(b"PAR1"):
        return PARQUET
    if line.startswith("{"):
        return JSONL[0]
    names = {cell.strip(' "\r').lower() for separator in ",\t;" for cell in line.split(separator)}
    return CSV[0] if names & ({wanted.text.lower()} if wanted.text else set(TEXTS)) else ".txt"
