"""Columns between Arrow and numpy, and the schemas of the folders that a job writes."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

Octets = npt.NDArray[np.uint8]


def octets_of(column: pa.ChunkedArray | pa.Array, width: int) -> Octets:
    """A column of n binary values of `width` bytes each -> (n, width)."""
    return np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(-1, width)


def integers_of(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int64]:
    """A column of n numbers -> (n,), writable: a compiled function is compiled again for arrays that are not."""
    return np.array(column.to_numpy(), np.int64)


def in_microseconds(schema: pa.Schema) -> pa.Schema:
    """The schema with times as Spark exchanges them."""
    return pa.schema(
        [
            pa.field(field.name, pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema as that of a data frame."""
    return from_arrow_schema(schema)
