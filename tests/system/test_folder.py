"""A folder as a source: what is added, edited, renamed or removed between two runs is found by the next, and said."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Neardup
from tests.support.languages import HINDI
from tests.support.sample_texts import STORIES

CONFIG = """
[source]
kind = "folder"
[content]
url = "file:pages"
[ledger]
path = "neardup.db"
[metrics]
listen = "127.0.0.1:0"
"""
FIRST, SECOND = STORIES[HINDI][:2]


@pytest.fixture
def neardup(make_neardup: Callable[[str], Neardup]) -> Neardup:
    neardup = make_neardup(CONFIG)
    (neardup.folder / "pages").mkdir()
    for name, text in (("a.txt", FIRST), ("b.txt", SECOND)):
        (neardup.folder / "pages" / name).write_text(text, encoding="utf-8")
    done = neardup("backfill", "--json")
    assert done.code == 0 and done.facts["fingerprinted"] == 2, done.err
    return neardup


def daily(neardup: Neardup) -> dict[str, object]:
    done = neardup("daily", "--json")
    assert done.code == 0, done.err
    return {name: value for name, value in done.facts.items() if name in RESULTS and value}


RESULTS = ("fingerprinted", "skipped", "dead_lettered", "flagged", "removed")


def pages_of(neardup: Neardup) -> Path:
    return neardup.folder / "pages"


def test_a_page_that_is_added_is_compared_whatever_its_date(neardup: Neardup) -> None:
    (pages_of(neardup) / "copy.txt").write_text(FIRST, encoding="utf-8")
    os.utime(pages_of(neardup) / "copy.txt", (0, 0))
    assert daily(neardup) == {"fingerprinted": 1, "skipped": {"unchanged": 2}, "flagged": {"exact": 1}}
    assert daily(neardup) == {"skipped": {"unchanged": 3}}


def test_a_page_that_is_edited_is_compared_again_though_its_date_is_set_back(neardup: Neardup) -> None:
    page = pages_of(neardup) / "b.txt"
    before = page.stat()
    page.write_text(FIRST, encoding="utf-8")
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns - 10**12))
    assert daily(neardup) == {"fingerprinted": 1, "skipped": {"unchanged": 1}, "flagged": {"exact": 1}}


def test_a_page_that_is_removed_is_gone_with_its_flags(neardup: Neardup) -> None:
    (pages_of(neardup) / "copy.txt").write_text(FIRST, encoding="utf-8")
    daily(neardup)
    (pages_of(neardup) / "copy.txt").unlink()
    assert daily(neardup) == {"skipped": {"unchanged": 2}, "removed": 1}
    assert neardup("export", "--format", "jsonl").out == "", "its flags are gone"
    assert neardup("show", "copy.txt").code != 0


def test_a_page_that_is_renamed_is_no_copy_of_itself(neardup: Neardup) -> None:
    (pages_of(neardup) / "a.txt").rename(pages_of(neardup) / "new.txt")
    assert daily(neardup) == {"fingerprinted": 1, "skipped": {"unchanged": 1}, "removed": 1}


def test_a_page_that_cannot_be_read_any_more_is_not_gone(neardup: Neardup) -> None:
    (pages_of(neardup) / "a.txt").unlink()
    (pages_of(neardup) / "a.txt").symlink_to("/nowhere.txt")
    assert daily(neardup) == {"skipped": {"missing": 1, "unchanged": 1}}
    assert neardup("show", "a.txt").code == 0, "a broken link may be mended"
    (pages_of(neardup) / "a.txt").unlink()
    assert daily(neardup) == {"skipped": {"unchanged": 1}, "removed": 1}
    assert neardup("dead-letters", "--json").facts["by_reason"] == {}


def test_an_empty_folder_removes_nothing(neardup: Neardup) -> None:
    pages_of(neardup).rename(neardup.folder / "away")
    pages_of(neardup).mkdir()
    failed = neardup("daily")
    assert failed.code == 1 and "has no files" in failed.err, failed.err
    pages_of(neardup).rmdir()
    (neardup.folder / "away").rename(pages_of(neardup))
    assert daily(neardup) == {"skipped": {"unchanged": 2}}


def test_a_page_in_no_known_language_is_named_by_its_path(neardup: Neardup) -> None:
    (pages_of(neardup) / "cherokee.txt").write_text("ᎣᏏᏲ ᏙᎯᏧ ᎭᏛᏗ " * 40, encoding="utf-8")
    done = neardup("daily")
    assert done.code == 0 and '"story": "cherokee.txt"' in done.err, done.err
    listed = neardup("dead-letters", "cherokee.txt", "--json").facts["dead_letters"]
    assert [row["key"] for row in listed] == ["cherokee.txt"], listed
    assert "names no story" in neardup("retry", "cherokee.txt").err
    (pages_of(neardup) / "cherokee.txt").write_text(FIRST, encoding="utf-8")
    assert daily(neardup)["fingerprinted"] == 1
    assert "No dead letters" in neardup("dead-letters").out
