"""Laws: a folder lists each of its pages once, by a stable id and its path, in the language of its text, whatever the
times of its files say; what cannot be a story has a named outcome.
"""

import os
from pathlib import Path

import pytest
from neardup.core.languages import SHIPPED
from neardup.errors import Fatal
from neardup.records import BadRow, Dead, Language, Story
from neardup.source import list_rows
from neardup.source.folder import Folder, extract_prose, find_folder_language
from neardup.source.parse import parse_id

from tests.support.languages import HINDI, SAMPLED
from tests.support.sample_texts import STORIES

MENU = "<head><style>p { color: red }</style></head><nav><a>Home</a><a>Genres</a><a>Log in</a></nav>"


async def listed(root: Path, language: Language | None = None) -> tuple[Folder, list[Story | BadRow]]:
    folder = Folder(root, SHIPPED, language)
    return folder, [row async for row in list_rows(folder)]


async def test_each_page_is_a_story_with_the_language_of_its_text(tmp_path: Path) -> None:
    for language in SAMPLED:
        for number, text in enumerate(STORIES[language][:3]):
            (tmp_path / f"{language[:3]} {number}.html").write_text(f"{MENU}<p>{text}</p>", encoding="utf-8")
    (tmp_path / ".hidden.html").write_text("hidden")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    folder, rows = await listed(tmp_path)
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
    _, [named] = await listed(tmp_path)
    folder, [given] = await listed(tmp_path, HINDI)
    assert (named.language, given.language) == ("TAMIL", HINDI)  # type: ignore[union-attr]
    assert not folder.guessed
    assert find_folder_language("ta", SHIPPED) is None, "a file at the top is in no folder"


async def test_short_and_mixed_texts_are_uncertain(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("le chat est dans la maison avec les enfants du village")
    (tmp_path / "2.txt").write_text("")
    folder, rows = await listed(tmp_path)
    assert len(rows) == 2 and folder.unsure == 2


async def test_what_cannot_be_a_story_has_a_named_outcome(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("これは日本語の文章です。" * 20, encoding="utf-8")
    (tmp_path / "a\nb.txt").write_text("a name with a line end")
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("a name that is no UTF-8")
    _, rows = await listed(tmp_path)
    assert sorted((row.reason for row in rows if isinstance(row, BadRow)), key=str) == [
        Dead.BAD_LANGUAGE,
        Dead.BAD_PATH,
        Dead.BAD_PATH,
    ]


async def test_a_folder_without_pages_or_that_cannot_be_read_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(Fatal, match=r"no files \*\.txt.*only \.png"):
        await listed(tmp_path)
    with pytest.raises(Fatal, match="cannot read the folder"):
        await listed(tmp_path / "nowhere")


@pytest.mark.parametrize("page", [b"<!--" * 60_000, b"<script" * 36_000, b"<" * 250_000, b"<style>" * 36_000])
def test_a_hostile_page_takes_no_time(page: bytes) -> None:
    assert len(extract_prose(page)) <= len(page)
