"""Columns between Arrow and numpy, and the schemas of the folders that a job writes."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray, Schema  # type: ignore[import-untyped]
    from pyspark.sql.types import StructType

Octets = npt.NDArray[np.uint8]


def octets_of(column: "ChunkedArray | Array", width: int) -> Octets:
    """A column of n binary values of `width` bytes each -> (n, width)."""
    return np.frombuffer(b"".join(column.to_pylist()), np.uint8).reshape(-1, width)


def integers_of(column: "ChunkedArray | Array") -> npt.NDArray[np.int64]:
    """A column of n numbers -> (n,), writable: a compiled function is compiled again for arrays that are not."""
    return np.array(column.to_numpy(), np.int64)


def in_microseconds(schema: "Schema") -> "Schema":
    """The schema with times as Spark exchanges them."""
    import pyarrow as pa  # noqa: PLC0415 - it is optional

    return pa.schema(
        [
            pa.field(field.name, pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )


def spark_schema(schema: "Schema") -> "StructType":
    """An Arrow schema as that of a data frame."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - it is optional

    return from_arrow_schema(schema)
