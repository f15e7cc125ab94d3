"""The rows of a table become stories, or bad rows, as those of a manifest do; a wrong table is one line.

Texts are fingerprinted as they stand, pages as the daemon reads them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from neardup.cli import main
from neardup.config import Config, Content, Source
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.errors import Fatal
from neardup.source.documents import Columns
from neardup.source.parse import parse_id
from neardup.spark import session
from neardup.spark.reading import READ, Reading, list_table, make_reader
from pyarrow import parquet

from tests.support.command import Ended, assert_one_line
from tests.support.languages import HINDI, TAMIL
from tests.support.sample_texts import STORIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONFIG = Config(source=Source(kind="scan"), content=Content(url="file:/"))
TEXT = {language: " ".join(STORIES[language]) for language in (HINDI, TAMIL)}
PUBLISHED = datetime(2026, 1, 1, tzinfo=UTC)
PRINTS = ("text_hash", "simhash", "signature", "words", "shingles")


def write(path: Path, columns: dict[str, list[object]]) -> None:
    table = pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in table.to_pylist()), encoding="utf-8")


def test_rows_of_a_table_are_parsed_as_those_of_a_manifest(spark: "SparkSession", tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"story_id": "7", "language": "hi", "html": "<p>एक कहानी", "published_at": "2026-01-01T00:00:00Z"},
        {"story_id": "seven", "language": "HINDI", "html": "दूसरी कहानी"},
        {"story_id": "8", "language": "Klingon", "html": "x"},
        {"story_id": "9", "language": "hi", "html": None},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    table = list_table(spark, CONFIG, str(path), Columns(), None)
    listed = {row["id"] or row["reason"]: row for row in table.toArrow().to_pylist()}
    assert listed.keys() == {7, parse_id("seven"), "bad_language", "bad_row"}
    assert listed[7]["body"].decode() == "<p>एक कहानी"
    assert listed[7]["published_at"] == 1_767_225_600_000
    assert (listed[parse_id("seven")]["name"], listed[parse_id("seven")]["language"]) == ("seven", HINDI)


@pytest.mark.parametrize(
    ("name", "column", "shape"),
    [("t.parquet", "story_text", "{}"), ("t.jsonl", "html", "<title>कथा</title><script>x</script><p>{}</p>")],
)
def test_texts_and_pages_are_fingerprinted(
    name: str, column: str, shape: str, *, spark: "SparkSession", tmp_path: Path
) -> None:
    bodies: list[object] = [shape.format(TEXT[language]) for language in TEXT]
    others: dict[str, list[object]] = {"id": [7, 8], "language": [*TEXT], "published_at": [PUBLISHED, PUBLISHED]}
    write(tmp_path / name, others | {column: bodies})
    listed = list_table(spark, CONFIG, str(tmp_path / name), Columns(column), None)
    rows = listed.mapInArrow(make_reader(CONFIG, Reading.of(CONFIG, 1, with_bodies=True)), READ).toArrow().to_pylist()
    assert {row["id"]: row["language"] for row in rows} == dict(zip((7, 8), TEXT, strict=True))
    for row in rows:
        expected = fingerprint_text(TEXT[row["language"]])
        assert [row[print_] for print_ in PRINTS] == [getattr(expected, print_) for print_ in PRINTS]
        assert row["published_at"] == PUBLISHED.timestamp() * 1_000


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("none.parquet", (), ("cannot read", "none.parquet")),
        ("broken.parquet", (), ("cannot read", "broken.parquet")),
        ("numbers.parquet", (), ("column text", "long")),
        ("numbers.parquet", ("--text", "prose"), ("--text", "no column prose")),
        ("nothing.jsonl", (), ("nothing.jsonl", "--text")),
        ("without_language.jsonl", (), ("--language",)),
    ],
)
def test_a_wrong_table_ends_in_one_line(
    name: str,
    options: tuple[str, ...],
    words: tuple[str, ...],
    spark: "SparkSession",
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "broken.parquet").write_text("no table")
    (tmp_path / "nothing.jsonl").write_text("")
    write(tmp_path / "numbers.parquet", {"id": [1], "language": [HINDI], "text": [1]})
    write(tmp_path / "without_language.jsonl", {"id": [1], "text": ["x"]})

    @contextmanager
    def shared(_: str | None) -> Iterator["SparkSession"]:
        yield spark

    monkeypatch.setattr(session, "open_session", shared)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["spark", "--output", "out", "--input", str(tmp_path / name), *options])
    assert_one_line(Ended(int(str(ended.value.code)), "", capsys.readouterr().err), 2, *words)


def test_a_stage_that_fails_is_one_line(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    frame = spark.range(1)
    with (
        pytest.raises(Fatal, match=r"\Athe job failed: .*file.*\Z"),
        session.translate_spark_errors(Fatal, "the job failed"),
    ):
        frame.write.parquet(str(tmp_path / "file" / "folder"))
