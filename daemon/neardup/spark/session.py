"""The Spark session of a job, that of spark-submit or one on this machine; its schemas, and its errors."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd  # type: ignore[import-untyped]  # noqa: F401 - pyspark needs it
import pyarrow as pa  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from neardup.errors import Fatal, Misuse, NeardupError

Batches = Iterator[pa.RecordBatch]
ARROW_TYPES = {
    "long": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
}


@contextmanager
def open_session(master: str | None) -> Iterator[SparkSession]:
    """Open a session, which ends with the context.

    Without `master` it is the one that spark-submit or the environment names.  Raises Misuse where it cannot be
    opened, such as without Java or for a wrong master, Fatal for an error of Spark inside the context.
    """
    builder = SparkSession.builder.appName("neardup")
    if master is not None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master)
    with translate_spark_errors(Misuse, "cannot open a session of Spark"):
        spark = builder.getOrCreate()
    try:
        with translate_spark_errors(Fatal, "the job failed"):
            yield spark
    finally:
        spark.stop()


@contextmanager
def translate_spark_errors(kind: type[NeardupError], what: str) -> Iterator[None]:
    """Raise an error of Spark as one of this kind, with the first line of what Spark says; its log has the rest."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        said = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else str(error)
        raise kind(f"{what}: {str(said).strip().splitlines()[0]}") from error


def find_path(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """The file system of Hadoop that has the path or the pattern of this name, and this as a path of it."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(name)  # noqa: SLF001 - the only way to it
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path  # noqa: SLF001 - likewise


def parse_schema(columns: str) -> pa.Schema:
    """Columns as Spark writes them, `id long, name string` -> the schema of their record batches."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in (column.split() for column in columns.split(", "))])


def convert_to_microseconds(schema: pa.Schema) -> pa.Schema:
    """The schema with times as Spark exchanges them."""
    return pa.schema(
        [
            pa.field(field.name, pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )
