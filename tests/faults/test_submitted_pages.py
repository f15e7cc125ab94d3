"""Laws of the pages of submitted stories on disk: a backup has them, and what no story needs is removed."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from neardup.errors import Fatal
from neardup.ledger import files
from neardup.ops.backup import back_up
from neardup.pipeline import submitted_pages

from tests.support.checked_ledger import CheckedLedger, checked_ledger, words_of
from tests.support.languages import ODIA, URDU

LONG_AGO = 1_000_000_000


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[CheckedLedger]:
    async with checked_ledger(tmp_path) as made:
        yield made


def names(ledger: Path) -> list[str]:
    return [path.name for path in submitted_pages.kept(ledger)]


async def test_a_backup_has_the_pages_of_its_stories(platform: CheckedLedger, tmp_path: Path) -> None:
    ledger, copy = platform.ledger.path, tmp_path / "copy.db"
    for story_id in (1, 2):
        await platform.put(ODIA, story_id, words_of(ODIA, f"a{story_id}"))
    back_up(ledger, copy)
    assert names(copy) == names(ledger)
    for page in submitted_pages.kept(ledger):
        assert (files.submitted_folder(copy) / page.name).read_bytes() == page.read_bytes()
    await platform.submissions.forget(1)
    back_up(ledger, copy)
    assert names(copy) == names(ledger) and len(names(copy)) == 1, "the backup still has the page of a forgotten story"


async def test_only_what_no_story_needs_is_removed(platform: CheckedLedger) -> None:
    ledger = platform.ledger.path
    await platform.put(URDU, 1, words_of(URDU, "a"))
    [needed] = submitted_pages.kept(ledger)
    left = [
        needed.with_name(name) for name in (".x.part", "1-0123456789abcdef.html", "7-0123456789abcdef.html", "note")
    ]
    recent = needed.with_name("8-0123456789abcdef.html")
    for file in (*left, recent):
        file.touch()
    for file in (*left, needed):
        os.utime(file, (LONG_AGO, LONG_AGO))
    await platform.ledger.do(submitted_pages.remove_unused, ledger)
    assert set(files.submitted_folder(ledger).iterdir()) == {needed, recent}, "a recent one may be about to be needed"


async def test_a_page_that_cannot_be_written_is_one_line(platform: CheckedLedger) -> None:
    files.submitted_folder(platform.ledger.path).touch()
    with pytest.raises(Fatal, match="cannot keep the page of story 1: "):
        await platform.put(URDU, 1, words_of(URDU, "a"))
    assert await platform.flagged() == {}
