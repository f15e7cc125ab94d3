"""Laws of pages in files: a path that is no file is gone, and an unchanged file is not read again."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Content
from neardup.core.page import Page
from neardup.errors import Fatal, Forbidden, Gone, Transient
from neardup.pages.store import Pages

from tests.support.builders import fetch_page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = tmp_path / "pages"
    pages.mkdir()
    (tmp_path / "secret.html").write_text("outside the folder")
    return pages


def pages_of(folder: Path, max_bytes: int = 100) -> Pages:
    return Pages(Content(url=f"file:{folder}", max_bytes=max_bytes))


def test_a_file_is_read_again_only_after_a_change(folder: Path) -> None:
    (folder / "1.html").write_bytes(b"one")
    pages = pages_of(folder)
    first = fetch_page(pages, "1.html")
    assert first is not None and first.etag is not None
    assert first == Page(b"one", None, first.etag)
    assert fetch_page(pages, "1.html", first.etag) is None
    (folder / "1.html").write_bytes(b"two, and longer")
    again = fetch_page(pages, "1.html", first.etag)
    assert again is not None and again.body == b"two, and longer"


def test_a_path_that_is_no_regular_file_is_gone(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "inside").mkdir()
    for path in ("none", "pipe", "inside", "inside/", "none/1.html", "n" * 300, "", "a\0b", "\ud800"):
        with pytest.raises(Gone):
            fetch_page(pages_of(folder), path)


@given(st.lists(st.sampled_from(["..", ".", "", "pages", "secret.html", "x"]), max_size=6).map("/".join))
def test_no_path_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "outside" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "secret.html").write_text("outside the folder")
    for candidate in (path, f"/{path}", f"{folder.parent}/{path}"):
        with pytest.raises(Gone):
            fetch_page(pages_of(folder), candidate)


@given(st.lists(st.sampled_from(["file", "folder", "chain", "parent"]), min_size=1, max_size=3), st.booleans())
def test_no_symbolic_link_leads_out_of_the_folder(links: list[str], to_inside: bool) -> None:
    with TemporaryDirectory() as name:
        outside, folder, linked = Path(name) / "outside", Path(name) / "pages", Path(name) / "linked"
        (folder / "inside").mkdir(parents=True)
        outside.mkdir()
        target = folder / "inside" if to_inside else outside
        (target / "1.html").write_bytes(b"a page")
        path = folder / "link"
        for n, link in enumerate(links):
            path = folder / f"link{n}"
            goal = {
                "file": target / "1.html",
                "folder": target,
                "chain": folder / f"link{n - 1}" if n else target,
                "parent": Path("..") / target.relative_to(folder.parent),
            }[link]
            path.symlink_to(goal)
        asked = path.name if path.is_file() else f"{path.name}/1.html"
        linked.symlink_to(folder)
        for root in (folder, linked):
            pages, page = pages_of(root), None
            if to_inside:
                page = fetch_page(pages, asked)
                assert page is not None and page.body == b"a page", "a link within the folder is not followed"
            else:
                with pytest.raises(Gone, match="leads out"):
                    fetch_page(pages, asked, page.etag if page else None)


def test_the_folder_may_be_a_link_that_is_changed(folder: Path, tmp_path: Path) -> None:
    (folder / "1.html").write_bytes(b"one")
    current, other = tmp_path / "current", tmp_path / "other"
    other.mkdir()
    (other / "1.html").write_bytes(b"two")
    current.symlink_to(folder)
    pages = pages_of(current)
    assert fetch_page(pages, "1.html") is not None
    current.unlink()
    current.symlink_to(other)
    again = fetch_page(pages, "1.html")
    assert again is not None and again.body == b"two"


def test_a_file_that_changes_while_it_is_read_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "1.html").write_bytes(b"one")
    fstat = os.fstat

    def cut_after(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        os.truncate(folder / "1.html", 1)
        return status

    monkeypatch.setattr("neardup.pages.store.os.fstat", cut_after)
    with pytest.raises(Transient, match="changed while"):
        fetch_page(pages_of(folder), "1.html")


def test_a_large_file_is_cut_and_a_locked_one_forbidden(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "1.html").write_bytes(bytes(100))
    document = fetch_page(pages_of(folder, 100), "1.html")
    assert document is not None and document.body == bytes(100)
    cut = fetch_page(pages_of(folder, 99), "1.html")
    assert cut is not None and (cut.body, cut.is_cut, document.is_cut) == (bytes(99), True, False)
    (folder / "1.html").chmod(0)
    if os.access(folder / "1.html", os.R_OK):  # root may read any file

        def refused(*_: object, **__: object) -> int:
            raise PermissionError(13, "Permission denied", "1.html")

        monkeypatch.setattr("neardup.pages.store.os.open", refused)
    with pytest.raises(Forbidden, match="Permission denied"):
        fetch_page(pages_of(folder), "1.html")


def test_other_errors_are_transient(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(Transient, match="symbolic links"):
        fetch_page(pages_of(folder), "loop")


def test_a_missing_folder_is_fatal(tmp_path: Path) -> None:
    with pytest.raises(Fatal, match="no folder"):
        pages_of(tmp_path / "none")
