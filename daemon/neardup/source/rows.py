"""Rows of a CSV, JSONL, JSON or Parquet file, each with its position.

What a file is shows in its content; its name counts where the content leaves it open.  JSONL has an object a line, JSON
is an array of objects.

A listing of millions of rows is never in memory as a whole.  CSV and JSONL are read by byte ranges, and a row's
position is the offset where it begins, so that the file is not kept open either: a later process can start at any row.
Parquet is read batch by batch, an array object by object, and a row's position is its number, counted from 0.
"""

import asyncio
import codecs
import csv
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from neardup.errors import Fatal, Misuse, needs_extra
from neardup.records import format_count
from neardup.telemetry.log import log

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]


CSV, JSONL, JSON, PARQUET = (".csv", ".tsv"), (".jsonl", ".ndjson"), ".json", ".parquet"  # endings of file names
TABLE_ENDINGS = (*CSV, *JSONL, JSON, PARQUET)
ARRAY = re.compile(rb"\s*\[\s*[{\]]")  # the beginning of JSON; [id],[text] is a header of CSV
BETWEEN_ELEMENTS = re.compile(r"[\s,]*")
LONGEST_ELEMENT = 100_000_000  # characters of an array's element
CHUNK_BYTES = 4 * 1024 * 1024
BLOCK_ROWS = 256  # at most, in a block
HEADER_BYTES = 64 * 1024
SEPARATORS = ",\t;"
NOT_UTF8 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"PK\x03\x04", b"PAR1")  # a workbook and a Parquet file
ROWS_PER_BATCH = 4096  # of Parquet
SHOWN_CHARACTERS = 500  # of a row that cannot be used


class ListedColumns(Struct, frozen=True):
    """The names of the columns that a listing must have, and of those that it may have."""

    required: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.required + self.optional


REQUIRED = ("id", "language")
OPTIONAL = ("path", "author_id", "title", "published_at", "updated_at", "series_id")
OF_STORIES = ListedColumns(REQUIRED, OPTIONAL)
OF_WORKS = ListedColumns((*REQUIRED, "catalogue"), (*OPTIONAL, "licence"))


class Reader(Protocol):
    """A file of `size` bytes that can be read by byte ranges: [start, end) -> its bytes."""

    size: int

    def __call__(self, start: int, end: int) -> Awaitable[bytes]: ...


class FileReader:
    """Reads a local file, which messages call `called`, by byte ranges.  Raises Misuse if it cannot be read."""

    def __init__(self, path: Path, called: str) -> None:
        self._path = path
        self._called = called
        try:
            with path.open("rb") as file:
                self._stat = os.fstat(file.fileno())
        except OSError as error:
            raise Misuse(f"cannot read {called}: {error.strerror}") from error
        self.size = self._stat.st_size
        self.name = f"{path}:{self.size}:{self._stat.st_mtime_ns}"

    def head(self) -> bytes:
        """The first HEADER_BYTES."""
        with self._path.open("rb") as file:
            return file.read(HEADER_BYTES)

    async def __call__(self, start: int, end: int) -> bytes:
        with self._path.open("rb") as file:
            now = os.fstat(file.fileno())
            if (now.st_ino, now.st_size, now.st_mtime_ns) != (
                self._stat.st_ino,
                self._stat.st_size,
                self._stat.st_mtime_ns,
            ):
                raise Fatal(f"{self._called} changed during the run: run again")
            file.seek(start)
            return file.read(end - start)


class Row(Struct, frozen=True):
    """One row: the offset where it begins, and its values by column, or why it cannot be parsed."""

    position: int
    values: Mapping[str, object]
    raw: str
    error: str | None = None


class PlainRows(Struct, frozen=True):
    """Adjacent rows of a CSV file, each on a line of its own, in columns: their offsets, and their values by column."""

    positions: list[int]
    values: Mapping[str, Sequence[str]]
    lines: list[bytes]

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, rows: slice) -> "PlainRows":
        values = {column: values[rows] for column, values in self.values.items()}
        return PlainRows(self.positions[rows], values, self.lines[rows])

    def rows(self) -> Iterator[Row]:
        """The rows one by one."""
        for position, line, *row in zip(self.positions, self.lines, *self.values.values(), strict=True):
            yield Row(position, dict(zip(self.values, row, strict=True)), _show_bytes(line))


class Parse(Protocol):
    """Bytes that begin at a row's offset, `start` -> rows; unless `final`, the last row may be incomplete."""

    def __call__(self, chunk: bytes, start: int, *, final: bool) -> Iterator[Row | PlainRows]: ...


async def read_csv(
    read: Reader, name: str, start: int = 0, columns: ListedColumns | None = OF_STORIES
) -> AsyncIterator[Row]:
    """As `read_csv_blocks`, one by one."""
    async for block in read_csv_blocks(read, name, start, columns):
        for row in [block] if isinstance(block, Row) else block.rows():
            yield row


async def read_csv_blocks(
    read: Reader, name: str, start: int = 0, columns: ListedColumns | None = OF_STORIES
) -> AsyncIterator[Row | PlainRows]:
    """The rows from byte `start` on (0: from the first), with any columns if they are None.

    Raises Misuse for a header that lacks a required column.
    """
    head = await read(0, min(HEADER_BYTES, read.size)) if read.size else b""
    header, separator, begin = _parse_header(head, name, columns)
    async for block in _read_chunks(read, max(start, begin), _make_csv_parser(header, separator)):
        yield block


def detect_kind(head: bytes, ending: str) -> str:
    """The ending that fits the beginning of a table, of which the first are CSV, JSONL, JSON and PARQUET.

    `ending` is that of its name, which counts for a file that begins like none of the last three.
    """
    head = head.removeprefix(codecs.BOM_UTF8)
    if head.startswith(b"PAR1"):
        return PARQUET
    if ARRAY.match(head):
        return JSON
    if head.lstrip().startswith(b"{"):
        return JSONL[0]
    if ending in JSONL:
        return JSONL[0]
    return PARQUET if ending == PARQUET else CSV[0]


async def read_json(read: Reader, start: int = 0) -> AsyncIterator[Row]:
    """The objects of an array from the one with the number `start` on.

    What is no JSON ends the array, as a row with an error; so does an element of more than LONGEST_ELEMENT.
    """
    decode, parse = codecs.getincrementaldecoder("utf-8-sig")("replace").decode, json.JSONDecoder().raw_decode
    text, at, offset, number = "", 0, 0, -1  # the bracket that opens the array takes the first
    while True:
        if between := BETWEEN_ELEMENTS.match(text, at):
            at = between.end()
        try:
            if number < 0:
                value, end = None, at + (text[at] == "[")
            elif text[at] == "]":
                return
            else:
                value, end = parse(text, at)
        except (ValueError, IndexError, RecursionError) as error:
            if offset < read.size and len(text) - at < LONGEST_ELEMENT:
                chunk = await read(offset, min(offset + CHUNK_BYTES, read.size))
                offset += len(chunk)
                text, at = text[at:] + decode(chunk, offset == read.size), 0
                continue
            why = "the array has no end" if isinstance(error, IndexError) else f"not JSON: {error}"
            yield Row(max(number, 0), {}, text[at : at + SHOWN_CHARACTERS], why)
            return
        if number >= start:
            raw = text[at : min(end, at + SHOWN_CHARACTERS)]
            if isinstance(value, dict):
                yield Row(number, value, raw)
            else:
                yield Row(number, {}, raw, "not JSON: not an object")
        at, number = end, number + 1


async def read_jsonl(read: Reader, start: int = 0) -> AsyncIterator[Row]:
    """The rows from byte `start` on."""
    async for row in _read_chunks(read, start, _parse_jsonl):
        assert isinstance(row, Row)
        yield row


async def _read_chunks(read: Reader, start: int, parse: Parse) -> AsyncIterator[Row | PlainRows]:
    """Parse chunk by chunk; the last row of a chunk may be incomplete, so it is read again with the next."""
    length = CHUNK_BYTES
    while start < read.size:
        end = min(start + length, read.size)
        chunk = await read(start, end)
        if end < read.size:
            chunk = chunk[: chunk.rfind(b"\n") + 1]
        held: Row | PlainRows | None = None
        for row in parse(chunk, start, final=end == read.size):
            if held is not None:
                yield held
            held = row
        if end == read.size:
            if held is not None:
                yield held
            return
        if isinstance(held, PlainRows) and len(held) > 1:
            yield held[:-1]
        last = start if held is None else held.position if isinstance(held, Row) else held.positions[-1]
        if last > start:
            start, length = last, CHUNK_BYTES
        else:
            length *= 2


def _parse_header(head: bytes, name: str, wanted: ListedColumns | None) -> tuple[list[str], str, int]:
    """The columns, the separator that gives the required ones, or else the most, and the offset of the first row."""
    if head.lstrip().startswith((b"[", b"{")):
        raise Misuse(f"{name} is JSON, not CSV: save it as one JSON object a line, with the ending .jsonl")
    line, newline, _ = head.partition(b"\n")
    text = line.decode("utf-8-sig", "replace")
    if head.startswith(NOT_UTF8) or not {"\0", "\ufffd"}.isdisjoint(text):
        raise Misuse(f"{name} is not text in UTF-8: save it as CSV in UTF-8, or as Parquet with the ending .parquet")
    try:
        headers = {separator: next(csv.reader([text], delimiter=separator), []) for separator in SEPARATORS}
    except csv.Error as error:
        raise Misuse(f"{name}: no CSV header: {error}") from error
    names = {separator: [column.strip().lower() for column in header] for separator, header in headers.items()}
    required = set[str]() if wanted is None else set(wanted.required)
    separator = max(SEPARATORS, key=lambda separator: (required <= set(names[separator]), len(names[separator])))
    if wanted is not None:
        check_header(names[separator], name, wanted)
    return names[separator], separator, len(line) + len(newline)


def check_header(header: list[str], name: str, wanted: ListedColumns) -> None:
    """Raise Misuse if a required column is missing; log a warning if columns may have other names than these."""
    missing = [column for column in wanted.required if column not in header]
    if missing:
        found = ", ".join(header)[:SHOWN_CHARACTERS] or "nothing"
        raise Misuse(f"{name}: no column {' and no column '.join(missing)} in its first line, which has {found}")
    unknown, absent = [c for c in header if c not in wanted.names], [c for c in wanted.names if c not in header]
    if unknown and absent:  # perhaps columns were renamed
        log.warning("the listing has columns that mean nothing here, and lacks others", unknown=unknown, lacks=absent)


def _make_csv_parser(header: list[str], separator: str) -> Parse:
    def parse(chunk: bytes, start: int, *, final: bool) -> Iterator[Row | PlainRows]:
        lines = chunk.splitlines(keepends=True)
        first = 0
        while first < len(lines):
            end = first + BLOCK_ROWS
            if block := _parse_plain_rows(header, separator, lines[first:end], start):
                yield block
                first, start = first + len(block), block.positions[-1] + len(block.lines[-1])
                continue
            chunks: list[bytes] = []
            reader = csv.reader(_feed(lines, first, chunks), delimiter=separator, strict=True)
            try:
                for values in reader:
                    raw = b"".join(chunks)
                    row = _make_csv_row(header, values, start, raw)
                    if row.error and len(chunks) > 1:
                        raise csv.Error("a quote that never closes")
                    if values:
                        yield row
                    first += len(chunks)
                    start += len(raw)
                    chunks.clear()
                    if first >= end:
                        break
            except csv.Error as error:  # skip this line only
                if not final and first + len(chunks) == len(lines):
                    yield Row(start, {}, "", "cut")
                    return
                yield Row(start, {}, _show_bytes(chunks[0]), f"not CSV: {error}")
                first += 1
                start += len(chunks[0])

    return parse


def _parse_plain_rows(header: list[str], separator: str, lines: list[bytes], start: int) -> PlainRows | None:
    """These lines, the first of which is at `start`, as rows; None unless each is a row with a value a column."""
    try:
        rows = list(csv.reader(_feed(lines, 0, []), delimiter=separator, strict=True))
    except csv.Error:
        return None
    if len(rows) != len(lines) or {len(row) for row in rows} != {len(header)}:
        return None
    positions = list(accumulate(map(len, lines[:-1]), initial=start))
    return PlainRows(positions, dict(zip(header, zip(*rows, strict=True), strict=True)), lines)


def _feed(lines: list[bytes], first: int, chunks: list[bytes]) -> Iterator[str]:
    for n in range(first, len(lines)):
        chunks.append(lines[n])
        yield lines[n].decode("utf-8", "replace")


def _make_csv_row(header: list[str], values: list[str], position: int, raw: bytes) -> Row:
    if len(values) != len(header):
        found, wanted = format_count(len(values), "value", "values"), format_count(len(header), "column", "columns")
        return Row(position, {}, _show_bytes(raw), f"{found} for {wanted}")
    return Row(position, dict(zip(header, values, strict=True)), _show_bytes(raw))


def _parse_jsonl(chunk: bytes, start: int, *, final: bool) -> Iterator[Row]:
    for line in chunk.splitlines(keepends=True):
        if line.strip():
            try:
                values = json.loads(line)
                if not isinstance(values, dict):
                    raise ValueError("not an object")
                yield Row(start, values, _show_bytes(line))
            except (ValueError, RecursionError) as error:
                yield Row(start, {}, _show_bytes(line), f"not JSON: {error}")
        start += len(line)


def _show_bytes(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()[:SHOWN_CHARACTERS]


def open_parquet(path: Path, called: str) -> "ParquetFile":
    """Open a Parquet file, which messages call `called`.

    Raises Misuse if it cannot be read, or if the library of Parquet is not installed.
    """
    with needs_extra("parquet", called):
        from pyarrow import ArrowException  # type: ignore[import-untyped]  # noqa: PLC0415 - it is optional, and takes a third of a second
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - likewise

    try:
        return ParquetFile(path)
    except OSError as error:
        raise Misuse(f"cannot read {called}: {error.strerror or error}") from error
    except ArrowException as error:
        raise Misuse(f"{called} is not a Parquet file: {error}") from error


async def read_parquet(
    file: "ParquetFile", name: str, start: int = 0, columns: ListedColumns | Collection[str] = OF_STORIES
) -> AsyncIterator[Row]:
    """The rows from the row `start` on, with these columns.

    Raises Misuse if the file lacks a column that a listing requires, Fatal if it is damaged or changes meanwhile.
    """
    present = {column.strip().lower(): column for column in file.schema_arrow.names}
    if isinstance(columns, ListedColumns):
        check_header(list(present), name, columns)
        columns = columns.names
    wanted = {column: given for column, given in present.items() if column in columns}
    batches = _read_parquet_batches(file, name, list(wanted.values()), start)
    while batch := await asyncio.to_thread(next, batches, None):
        position, rows = batch
        for n, values in enumerate(rows, position):
            if n >= start:
                row = {column: values[given] for column, given in wanted.items()}
                yield Row(n, row, str(list(row.values()))[:SHOWN_CHARACTERS])


def _read_parquet_batches(
    file: "ParquetFile", name: str, columns: list[str], start: int
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Batches of rows, each with the number of its first row, from that which holds the row `start` on."""
    from pyarrow import ArrowException  # noqa: PLC0415 - loaded with the file

    position = 0
    try:
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if position + size > start:
                at = position
                for batch in file.iter_batches(ROWS_PER_BATCH, row_groups=[group], columns=columns):
                    yield at, batch.to_pylist()
                    at += batch.num_rows
            position += size
    except (OSError, ArrowException) as error:
        raise Fatal(f"{name} is damaged, or changed during the run: {error}") from error
