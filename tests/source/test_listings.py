"""Laws: a Parquet manifest lists the same stories as a CSV one, from any row on; another file is refused in a line.

A folder lists each of its pages once, by a stable id and its path, in the language of its text, whatever the times of
its files say; what cannot be a story has a named outcome.
"""

import json
import os
from csv import DictReader
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from neardup.core.languages import SHIPPED
from neardup.errors import Fatal, Misuse
from neardup.records import BadRow, Checkpoint, Dead, Language, ListedRow, Story
from neardup.source import list_rows
from neardup.source.listings import Folder, Manifest, extract_prose, find_folder_language
from neardup.source.parse import parse_id
from pyarrow import csv, parquet

from tests.support.languages import HINDI, SAMPLED
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES

MENU = "<head><style>p { color: red }</style></head><nav><a>Home</a><a>Genres</a><a>Log in</a></nav>"


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


async def list_folder(root: Path, language: Language | None = None) -> tuple[Folder, list[Story | BadRow]]:
    folder = Folder(root, SHIPPED, language)
    return folder, [row async for row in list_rows(folder)]


async def test_each_page_is_a_story_with_the_language_of_its_text(tmp_path: Path) -> None:
    for language in SAMPLED:
        for number, text in enumerate(STORIES[language][:3]):
            (tmp_path / f"{language[:3]} {number}.html").write_text(f"{MENU}<p>{text}</p>", encoding="utf-8")
    (tmp_path / ".hidden.html").write_text("hidden")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    folder, rows = await list_folder(tmp_path)
    stories = {row.path: row for row in rows if isinstance(row, Story)}
    assert len(stories) == len(rows) == 3 * len(SAMPLED) == folder.size
    for path, story in stories.items():
        assert path is not None
        assert (story.id, story.name) == (parse_id(path), path), "the id follows from the path, which is the name"
        assert story.language.startswith(path[:3]), f"{path} was taken for {story.language}"
    assert folder.guessed.total() == len(rows) and folder.unsure <= 2, (folder.guessed, folder.unsure)


async def test_a_language_that_was_given_or_that_a_folder_names_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "ta").mkdir()
    (tmp_path / "ta" / "1.txt").write_text(STORIES[HINDI][0], encoding="utf-8")
    _, [named] = await list_folder(tmp_path)
    folder, [given] = await list_folder(tmp_path, HINDI)
    assert (named.language, given.language) == ("TAMIL", HINDI)  # type: ignore[union-attr]
    assert not folder.guessed
    assert find_folder_language("ta", SHIPPED) is None, "a file at the top is in no folder"


async def test_short_and_mixed_texts_are_uncertain(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("le chat est dans la maison avec les enfants du village")
    (tmp_path / "2.txt").write_text("")
    folder, rows = await list_folder(tmp_path)
    assert len(rows) == 2 and folder.unsure == 2


async def test_what_cannot_be_a_story_has_a_named_outcome(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("これは日本語の文章です。" * 20, encoding="utf-8")
    (tmp_path / "a\nb.txt").write_text("a name with a line end")
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a name that is no UTF-8")
    _, rows = await list_folder(tmp_path)
    assert sorted((row.reason for row in rows if isinstance(row, BadRow)), key=str) == [
        Dead.BAD_LANGUAGE,
        Dead.BAD_PATH,
        Dead.BAD_PATH,
    ]


async def test_a_folder_without_pages_or_that_cannot_be_read_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(Fatal, match=r"no files \*\.txt.*only \.png"):
        await list_folder(tmp_path)
    with pytest.raises(Fatal, match="cannot read the folder"):
        await list_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("page", [b"<!--" * 60_000, b"<script" * 36_000, b"<" * 250_000, b"<style>" * 36_000])
def test_a_hostile_page_takes_no_time(page: bytes) -> None:
    assert len(extract_prose(page)) <= len(page)
