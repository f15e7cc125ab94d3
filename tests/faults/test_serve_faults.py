"""The HTTP service without its index, and on a full disk: no answer is late or a defect, and nothing stored is lost.

A process that is killed while it stores a submitted story loses nothing and flags nothing twice.

Laws of the pages of submitted stories on disk: a backup has them, and what no story needs is removed.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import neardup as client_library
import pytest
from neardup.core.verify.tiers import SIMILAR
from neardup.errors import Fatal
from neardup.ledger import connect, files
from neardup.ops.backup import back_up
from neardup.ops.doctor import find_submission_fault
from neardup.pipeline import submitted_pages
from neardup.serve.messages import CheckAnswer

from tests.support.checked_ledger import CheckedLedger, checked_ledger, words_of
from tests.support.command import Neardup, embedded
from tests.support.faults.command_driver import Driver
from tests.support.faults.fault_table import Row, Said, find_said, make_row
from tests.support.faults.killed_command import STATEMENT
from tests.support.faults.small_disks import mounted
from tests.support.languages import HINDI, ODIA, SAMPLED, TAMIL, URDU
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port, redis_server
from tests.support.service import get, serving

DEADLINE_SECONDS = 1.0
MOST_SECONDS = DEADLINE_SECONDS + 2.0  # a slow machine, and two processes beside
Make = Callable[[str], Neardup]


def test_it_waits_for_redis_and_answers_without_it(
    make_neardup: Make, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    folder, listen = tmp_path / "redis", f"127.0.0.1:{free_port()}"
    folder.mkdir()
    neardup = make_neardup(embedded(index=f"unix://{folder}/redis.sock"))
    client = client_library.Client(f"http://{listen}", attempts=1)
    with serving(neardup, listen, NEARDUP_SERVE__DEADLINE_SECONDS=str(DEADLINE_SECONDS)) as (_, systemd, log), client:
        systemd.wait_for("STATUS=waiting: Redis does not answer")
        assert get(listen, "readyz")[0] == 503
        with redis_server(folder):
            systemd.wait_for("STATUS=serving")
            client.put(1, language="hi", text=STORIES[HINDI][0])
            assert client.check(language="hi", text=STORIES[HINDI][0]).verdict == "copy"
        began = time.monotonic()
        answer = client.check(language="hi", text=STORIES[HINDI][0])
        assert time.monotonic() - began < MOST_SECONDS, "the answer was late"
        assert answer.verdict == "copy", "the ledger alone has what the index lacks"
        with redis_server(folder):
            assert not client.check(language="hi", text=STORIES[HINDI][0]).estimated
        said = find_said("the service waits", log.read_text(encoding="utf-8"))
    record_row(make_row("serve: Redis away at its start", 1, said))


def test_a_full_disk_refuses_a_story_and_loses_none(
    make_neardup: Make, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    listen = f"127.0.0.1:{free_port()}"
    neardup = make_neardup(embedded())
    stored: dict[int, CheckAnswer] = {}
    with mounted(tmp_path / "disk", "1300k") as disk:
        ledger = disk.folder / "neardup.db"
        client = client_library.Client(f"http://{listen}", attempts=1)
        with serving(neardup, listen, NEARDUP_LEDGER__PATH=str(ledger)) as (_, systemd, _), client:
            systemd.wait_for("STATUS=serving")
            texts = [(language, text) for language in SAMPLED for text in STORIES[language]]
            for story_id, (language, text) in enumerate(texts):
                try:
                    stored[story_id] = client.put(story_id, language=language, text=text)
                except client_library.ServiceError as error:
                    refused = error
                    break
            else:
                raise AssertionError("the disk was never full")
            assert refused.fail_open
            assert refused.problem is not None
            assert (refused.problem.status, "disk" in refused.problem.detail) == (503, True), refused.problem
            disk.remount("size=50m")
            assert client.put(story_id, language=language, text=text).words
            for kept in [*stored, story_id]:
                assert client.story(kept).words > 0, f"story {kept} was answered for and is lost"
    record_row(make_row("serve: disk full", 1, find_said("disk is full", refused.problem.detail), in_flight=1))


POINTS = [
    ("before keep a page", 1),
    ("after keep a page", 1),
    *((STATEMENT, nth) for nth in (1, 4, 12, 20, 30)),
    ("after store a submission", 1),
    ("before settle", 1),
    ("after settle", 1),
]


def names_after_an_hour(ledger: Path) -> set[str]:
    """The files of pages, without what was left by a process that was killed."""
    folder = files.name_submitted_folder(ledger)
    for page in folder.iterdir():
        os.utime(page, (1, 1))
    with closing(connect(ledger)) as db:
        submitted_pages.remove_unused(db, ledger)
    return {page.name for page in folder.iterdir()}


def test_killed_anywhere_and_submitted_again_ends_equal(
    driver: Driver, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    original = words_of(TAMIL, "a")
    texts = {1: original, 2: original[:180]}

    def submit(folder: Path, story_id: int, at: dict[str, Any] | None = None) -> int | None:
        return driver.start(
            folder, "submit", str(folder), str(story_id), TAMIL, " ".join(texts[story_id]), at=at
        ).wait()

    async def state(folder: Path) -> tuple[dict[tuple[int, int], str], set[str], int]:
        async with checked_ledger(folder) as platform:
            flagged = await platform.flagged()
            paths = {path for (path,) in await platform.ledger.do(lambda db: db.execute("SELECT path FROM stories"))}
            [[rows]] = await platform.ledger.do(lambda db: db.execute("SELECT count(*) FROM flags").fetchall())
            again = await platform.check(original[:150], TAMIL)
            assert [match.estimated for match in again.matches] == [False, False], "a page was lost"
            return flagged, paths, rows

    ended, lost, twice = [], 0, 0
    for number, (point, nth) in enumerate(POINTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert submit(folder, 1) == 0
        since = {"since": "before store a submission"} if point == STATEMENT else {}
        ended.append(submit(folder, 2, {"point": point, "nth": nth, **since}))
        assert submit(folder, 2) == 0
        flagged, paths, rows = asyncio.run(state(folder))
        assert flagged == {(1, 2): SIMILAR}, f"killed at {point}, number {nth}"
        assert rows == 1
        lost, twice = lost + len(texts) - len(paths), twice + rows - len(flagged)
        assert names_after_an_hour(folder / "neardup.db") == {path.removeprefix("submitted://") for path in paths}
    assert ended == [-signal.SIGKILL] * len(POINTS), f"points were not reached: {ended}"
    said = Said("exit code -9", ended.count(-signal.SIGKILL))
    record_row(
        make_row("SIGKILL, a submission", len(POINTS), said, in_flight=len(POINTS), lost=lost, flagged_twice=twice)
    )


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
