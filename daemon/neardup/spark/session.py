"""The Spark session of a job: that of spark-submit, or one on this machine."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from neardup.extras import needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session(master: str | None) -> Iterator["SparkSession"]:
    """Open a session, which ends with the context.  Raises Misuse if pyspark is not installed.

    Without `master` it is the one that spark-submit or the environment names.
    """
    with needs("spark", "neardup spark"):
        import pandas as pd  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - pyspark needs it
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: F401, PLC0415 - likewise
        from pyspark.sql import SparkSession  # noqa: PLC0415 - it is optional

    builder = SparkSession.builder.appName("neardup")
    if master is not None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
