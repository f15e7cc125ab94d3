"""The files that the paths of a scan name: each once, in order, and those left out are counted."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.errors import Misuse
from neardup.source.documents import PAGE_ENDINGS, find_files

FILES = ("b.txt", "a.HTML", "below/c.md", "below/deep/d.htm", "picture.png", "notes", ".hidden/e.txt")
READ = {"b.txt", "a.HTML", "below/c.md", "below/deep/d.htm"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    return folder


def names(files: list[Path], folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in files]


def test_a_folder_is_read_to_any_depth_and_other_files_are_counted(folder: Path) -> None:
    left_out: Counter[str] = Counter()
    assert set(names(find_files([str(folder)], left_out, set()), folder)) == READ
    assert left_out == {".png": 1, "no ending": 1}


def test_a_file_is_read_whatever_its_ending(folder: Path) -> None:
    assert names(find_files([str(folder / "notes")], Counter(), set()), folder) == ["notes"]


@given(st.lists(st.sampled_from(["", "below", "below/c.md", "b.txt", "*.txt", "**/*.md", "*/deep"]), min_size=1))
def test_each_file_is_found_once_and_the_order_is_always_the_same(folder: Path, paths: list[str]) -> None:
    given_paths = [str(folder / path) for path in paths]
    found = find_files(given_paths, Counter(), set())
    assert len({file.resolve() for file in found}) == len(found), "a file was found twice"
    assert found == find_files(given_paths, Counter(), set())
    assert all(file.suffix.lower() in PAGE_ENDINGS for file in found)


def test_known_files_are_not_found_again(folder: Path) -> None:
    known: set[str] = set()
    find_files([str(folder / "below")], Counter(), known)
    assert set(names(find_files([str(folder)], Counter(), known), folder)) == {"b.txt", "a.HTML"}


@pytest.mark.parametrize("path", ["nothing.txt", "*.pdf", "below/nothing"])
def test_a_path_that_names_nothing_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(Misuse, match="no such file or folder"):
        find_files([str(folder / path)], Counter(), set())
