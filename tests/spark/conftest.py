"""One Spark session for all tests of Spark: it takes a quarter of a minute to start."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.faults.hostile_pages import DIES, SITECUSTOMIZE
from tests.support.paths import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "700m",
    # A job of these tests is over before code made for its queries, or the second compiler of the JVM, gains anything.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def poisoned_site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder: where it is the PYTHONPATH, a page with POISON kills the process that reads it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE.format(effect=DIES), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="session")
def spark(poisoned_site: str, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session on this machine with two tasks at a time, whose processes have the poisoned site."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only these tests load it

    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:  # other tests do not have this environment
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([poisoned_site, str(ROOT)]))
        patch.setenv("SPARK_LOCAL_DIRS", str(folder))
        session = builder.getOrCreate()
    yield session
    session.stop()
