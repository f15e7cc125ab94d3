"""Parquet, written by pyarrow, which is an optional dependency."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path

from neardup.errors import Misuse
from neardup.moderation.export.pairs import COLUMNS, IDS, TIMES, ExportRow

ROWS_PER_GROUP = 10_000
FLOATS = frozenset({"jaccard", "containment", "matched_containment"})
INTEGERS = frozenset({"hamming", "longest_run_words", "cluster_size"}) | IDS
BOOLEANS = frozenset({"same_author", "estimated"})


def require_parquet() -> None:
    """Raises Misuse if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401, PLC0415
    except ImportError:
        raise Misuse("Parquet needs pyarrow: pip install pyarrow") from None


def write_parquet(path: Path, pairs: Iterable[ExportRow]) -> None:
    """Write typed columns: ids are 64-bit integers, times are in milliseconds and UTC, unknown values are null."""
    require_parquet()
    import pyarrow as pa  # noqa: PLC0415 - the import takes a third of a second, and no other format needs it
    from pyarrow import parquet  # noqa: PLC0415

    def type_of(column: str) -> pa.DataType:
        if column in TIMES:
            return pa.timestamp("ms", tz="UTC")
        if column in BOOLEANS:
            return pa.bool_()
        return pa.float64() if column in FLOATS else pa.int64() if column in INTEGERS else pa.string()

    schema = pa.schema([(column, type_of(column)) for column in COLUMNS])
    source = iter(pairs)
    with parquet.ParquetWriter(path, schema, compression="zstd") as out:
        while rows := [_typed(pair) for pair in islice(source, ROWS_PER_GROUP)]:
            out.write_table(pa.Table.from_pylist(rows, schema))


def _typed(pair: ExportRow) -> ExportRow:
    return {
        column: datetime.fromisoformat(value) if column in TIMES and value else value for column, value in pair.items()
    }
