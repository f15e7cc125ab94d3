"""Laws of the pages of submitted stories on disk: a backup has them, and what no story needs is removed."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from neardup.errors import Fatal
from neardup.ledger import files
from neardup.ops.backup import back_up
from neardup.ops.doctor import find_submission_fault
from neardup.pipeline import submitted_pages

from tests.support.checked_ledger import CheckedLedger, checked_ledger, words_of
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.languages import ODIA, URDU

LONG_AGO = 1_000_000_000


def names(ledger: Path) -> list[str]:
    return [path.name for path in submitted_pages.list_files(ledger)]


async def test_a_backup_has_the_pages_of_its_stories(platform: CheckedLedger, tmp_path: Path) -> None:
    ledger, copy = platform.ledger.path, tmp_path / "copy.db"
    for story_id in (1, 2):
        await platform.put(ODIA, story_id, words_of(ODIA, f"a{story_id}"))
    back_up(ledger, copy)
    assert names(copy) == names(ledger)
    for page in submitted_pages.list_files(ledger):
        assert (files.name_submitted_folder(copy) / page.name).read_bytes() == page.read_bytes()
    await platform.submissions.forget(1)
    back_up(ledger, copy)
    assert names(copy) == names(ledger) and len(names(copy)) == 1, "the backup still has the page of a forgotten story"


async def test_only_what_no_story_needs_is_removed(platform: CheckedLedger) -> None:
    ledger = platform.ledger.path
    await platform.put(URDU, 1, words_of(URDU, "a"))
    [needed] = submitted_pages.list_files(ledger)
    left = [
        needed.with_name(name) for name in (".x.part", "1-0123456789abcdef.html", "7-0123456789abcdef.html", "note")
    ]
    recent = needed.with_name("8-0123456789abcdef.html")
    for file in (*left, recent):
        file.touch()
    for file in (*left, needed):
        os.utime(file, (LONG_AGO, LONG_AGO))
    await platform.ledger.do(submitted_pages.remove_unused, ledger)
    assert set(files.name_submitted_folder(ledger).iterdir()) == {needed, recent}, (
        "a recent one may be about to be needed"
    )


async def test_submissions_of_one_story_at_once_keep_its_page(platform: CheckedLedger, tmp_path: Path) -> None:
    """By two processes, as an edit and its undo: the file of a text that comes back is not removed with the edit."""
    ledger = platform.ledger.path
    texts = [words_of(ODIA, name) for name in ("a", "b")]
    async with checked_ledger(tmp_path) as other:
        for turn in range(10):
            await asyncio.gather(platform.put(ODIA, 1, texts[turn % 2]), other.put(ODIA, 1, texts[(turn + 1) % 2]))
            assert await platform.ledger.do(find_submission_fault, ledger) is None
    assert len(names(ledger)) == 1, "pages that no story needs are left"


async def test_a_page_that_was_lost_is_named_and_comes_back_with_its_story(
    platform: CheckedLedger, record_row: Callable[[Row], None]
) -> None:
    ledger = platform.ledger.path
    for story_id in (1, 2):
        await platform.put(ODIA, story_id, words_of(ODIA, f"a{story_id}"))
    [lost] = [page for page in submitted_pages.list_files(ledger) if page.name.startswith("2-")]
    lost.unlink()
    fault = str(await platform.ledger.do(find_submission_fault, ledger))
    assert "1 story has lost its page: 2;" in fault
    await platform.put(ODIA, 2, words_of(ODIA, "a2"))
    assert await platform.ledger.do(find_submission_fault, ledger) is None
    record_row(make_row("a submitted page lost", 1, find_said("story has lost its page", fault)))


async def test_a_page_that_cannot_be_written_is_one_line(platform: CheckedLedger) -> None:
    files.name_submitted_folder(platform.ledger.path).touch()
    with pytest.raises(Fatal, match="cannot keep the page of story 1: "):
        await platform.put(URDU, 1, words_of(URDU, "a"))
    assert await platform.flagged() == {}
