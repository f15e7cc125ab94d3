"""Parquet, written by pyarrow, which is an optional dependency."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.moderation.export.table import ExportRow, Table

if TYPE_CHECKING:
    from pyarrow import Schema  # type: ignore[import-untyped]

ROWS_PER_GROUP = 10_000


def write_parquet(path: Path, rows: Iterable[ExportRow], table: Table) -> None:
    """Write typed columns: ids are 64-bit integers, times are in milliseconds and UTC, unknown values are null."""
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second
    from pyarrow import parquet  # noqa: PLC0415

    schema = schema_of(table)
    source = iter(rows)
    with parquet.ParquetWriter(path, schema, compression="zstd") as out:
        while group := [typed(row, table) for row in islice(source, ROWS_PER_GROUP)]:
            out.write_table(pa.Table.from_pylist(group, schema))


def schema_of(table: Table) -> "Schema":
    """The typed columns of an export."""
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second

    def type_of(column: str) -> "pa.DataType":
        if column in table.times:
            return pa.timestamp("ms", tz="UTC")
        if column in table.booleans:
            return pa.bool_()
        if column in table.integers | table.ids:
            return pa.int64()
        return pa.float64() if column in table.floats else pa.string()

    return pa.schema([(column, type_of(column)) for column in table.columns])


def typed(row: ExportRow, table: Table) -> ExportRow:
    """The row with its times as such."""
    return {
        column: datetime.fromisoformat(value) if column in table.times and value else value
        for column, value in row.items()
    }
