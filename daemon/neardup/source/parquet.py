"""Rows of a Parquet file, read batch by batch; a row's position is its number, counted from 0."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.errors import Fatal, Misuse
from neardup.extras import needs
from neardup.source.rows import OF_STORIES, SHOWN_CHARACTERS, ListedColumns, Row, check_header

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped]

ROWS_PER_BATCH = 4096


def open_parquet(path: Path, called: str) -> "ParquetFile":
    """Open a Parquet file, which messages call `called`.

    Raises Misuse if it cannot be read, or if the library of Parquet is not installed.
    """
    with needs("parquet", called):
        from pyarrow import ArrowException  # type: ignore[import-untyped]  # noqa: PLC0415 - it is optional, and takes a third of a second
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - likewise

    try:
        return ParquetFile(path)
    except OSError as error:
        raise Misuse(f"cannot read {called}: {error.strerror or error}") from error
    except ArrowException as error:
        raise Misuse(f"{called} is not a Parquet file: {error}") from error


async def parquet_rows(
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
    batches = _batches(file, name, list(wanted.values()), start)
    while batch := await asyncio.to_thread(next, batches, None):
        position, rows = batch
        for n, values in enumerate(rows, position):
            if n >= start:
                row = {column: values[given] for column, given in wanted.items()}
                yield Row(n, row, str(list(row.values()))[:SHOWN_CHARACTERS])


def _batches(
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
