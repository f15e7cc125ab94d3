"""Laws: a Parquet manifest lists the same stories as a CSV one, from any row on; another file is refused in a line."""

import json
from csv import DictReader
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from neardup.core.languages import SHIPPED
from neardup.errors import Misuse
from neardup.records import Checkpoint, ListedRow, Story
from neardup.source import list_rows
from neardup.source.listings import Manifest
from pyarrow import csv, parquet

from tests.support.paths import SAMPLES


async def listed(path: Path, position: int = 0) -> list[ListedRow]:
    manifest = Manifest(path, SHIPPED)
    resume = Checkpoint(manifest.name, position)
    return [row async for row in list_rows(manifest, resume=resume)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "list.parquet"
    parquet.write_table(csv.read_csv(SAMPLES / "manifest.csv"), path, row_group_size=7)
    return path


def without_position(story: ListedRow) -> dict[str, Any]:
    assert isinstance(story, Story), story
    return {name: getattr(story, name) for name in Story.__struct_fields__ if name != "position"}


async def test_it_lists_what_the_csv_file_lists(made: Path) -> None:
    rows, same = await listed(made), await listed(SAMPLES / "manifest.csv")
    assert [without_position(row) for row in rows] == [without_position(row) for row in same]
    assert Manifest(made, SHIPPED).size == len(rows)


async def test_it_resumes_at_any_row(made: Path) -> None:
    rows = await listed(made)
    for position in (0, 1, 6, 7, 8, len(rows) - 1, len(rows)):
        assert await listed(made, position) == rows[position:], f"resumed at row {position}"


async def test_typed_columns_are_understood(tmp_path: Path) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = pa.table({"ID": [1.0, 2.0], "Language": ["hi", "ta"], "published_at": [when, None], "other": [[1], [2]]})
    parquet.write_table(table, tmp_path / "list.parquet")
    first, second = await listed(tmp_path / "list.parquet")
    assert isinstance(first, Story) and isinstance(second, Story)
    assert (first.id, first.name, first.published_at) == (1, None, int(when.timestamp() * 1000))
    assert (second.id, second.published_at) == (2, None)


@pytest.mark.parametrize("name", ["list.json", "list.csv", "list"])
async def test_an_array_lists_what_the_csv_file_lists(tmp_path: Path, name: str) -> None:
    rows = list(DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
    (tmp_path / name).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    found, same = await listed(tmp_path / name), await listed(SAMPLES / "manifest.csv")
    assert [without_position(row) for row in found] == [without_position(row) for row in same]
    assert await listed(tmp_path / name, 7) == found[7:]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("list.parquet", b"id,language\n1,hi\n", "is not a Parquet file"),
        ("list.csv", b"PAR1....", "is not a Parquet file"),
        ("list.csv", "id;language\n".encode("utf-16"), "save it as CSV in UTF-8"),
        ("list.csv", b"PK\x03\x04workbook", "save it as CSV in UTF-8"),
        (
            "list.csv",
            b"story,lang\n1,hi\n",
            "no column id and no column language in its first line, which has story, lang",
        ),
    ],
)
async def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Misuse, match=message):
        await listed(tmp_path / name)


async def test_a_parquet_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"story": [1]}), tmp_path / "list.parquet")
    with pytest.raises(Misuse, match="no column id and no column language"):
        await listed(tmp_path / "list.parquet")
