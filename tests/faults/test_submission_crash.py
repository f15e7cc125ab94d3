"""A process that is killed while it stores a submitted story loses nothing and flags nothing twice."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from neardup.core.verify.tiers import SIMILAR
from neardup.ledger import connect, files
from neardup.pipeline import submitted_pages

from tests.support.checked_ledger import checked_ledger, words_of
from tests.support.faults.command_driver import Driver
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.faults.killed_command import STATEMENT
from tests.support.languages import TAMIL

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
