"""The rows of a table become stories, or bad rows with their reason, as those of a manifest do."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from neardup.config import Config, Content, Source
from neardup.errors import Misuse
from neardup.source.documents import Columns
from neardup.source.parse import id_of
from neardup.spark.reading import list_table

from tests.support.languages import HINDI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = Config(source=Source(kind="scan"), content=Content(url="file:/"))


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_rows_of_a_table_are_parsed_as_those_of_a_manifest(spark: "SparkSession", tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"story_id": "7", "language": "hi", "html": "<p>एक कहानी", "published_at": "2026-01-01T00:00:00Z"},
        {"story_id": "seven", "language": "HINDI", "html": "दूसरी कहानी"},
        {"story_id": "8", "language": "Klingon", "html": "x"},
        {"story_id": "9", "language": "hi", "html": None},
    ]
    table = list_table(spark, CONFIG, write(tmp_path / "t.jsonl", rows), Columns(), None)
    listed = {row["id"] or row["reason"]: row for row in table.toArrow().to_pylist()}
    assert listed.keys() == {7, id_of("seven"), "bad_language", "bad_row"}
    assert listed[7]["body"].decode() == "<p>एक कहानी"
    assert listed[7]["published_at"] == 1_767_225_600_000
    assert (listed[id_of("seven")]["name"], listed[id_of("seven")]["language"]) == ("seven", HINDI)


def test_a_table_that_cannot_be_compared_is_refused(spark: "SparkSession", tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"id": 1, "body": "एक"}])
    with pytest.raises(Misuse, match="no column language"):
        list_table(spark, CONFIG, path, Columns(), None)
    with pytest.raises(Misuse, match="no column prose"):
        list_table(spark, CONFIG, path, Columns("prose"), HINDI)
    with pytest.raises(Misuse, match="cannot read"):
        list_table(spark, CONFIG, str(tmp_path / "none.parquet"), Columns(), HINDI)
