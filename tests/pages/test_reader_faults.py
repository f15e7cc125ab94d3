"""Laws: a reader process that is killed or stopped at any moment is replaced, and no page is lost; a pool is given up
only when processes fail to start three times in a row.

Python runs `sitecustomize` first in a process that has it on its path; there it harms the process at a chosen moment.

Laws of the watchdog: a page is costly by the CPU time spent on it, and only a process without CPU time stands still.

Its clocks are the test's.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Content
from neardup.core.page import PageFingerprinted
from neardup.core.text.extraction import Extraction
from neardup.errors import Fatal
from neardup.pages import fork_server, watchdog
from neardup.pages.reader_pool import STARTS, STRIKES, ReaderPool
from neardup.pages.results import ReadFailed
from neardup.pages.s3 import REQUEST_SECONDS
from neardup.pages.watchdog import (
    COSTLY_SECONDS,
    MOST_SECONDS_BETWEEN,
    NO_PAGE,
    STILL_SECONDS,
    Record,
    Stillness,
    WatchedProcess,
    create_record,
)
from neardup.records import Dead, Limit, Mark, MarkReason, Story

from tests.support.languages import TAMIL, TEXTS

SOON_STILL = 2.0  # seconds, instead of 60, for processes that are stopped; more than a busy machine keeps one waiting
SITECUSTOMIZE = """
import os, signal, sys
from pathlib import Path

def harm():
    left = Path({left!r})
    if names := sorted(left.iterdir()):
        names[0].unlink()
        os.kill(os.getpid(), signal.{signal})
        while True:  # another thread may receive the signal first
            signal.pause()

if any("neardup.pages.reader_process" in word for word in sys.orig_argv):
    if {moment!r} == "at its first instruction":
        harm()
    if {moment!r} == "as it forks":
        os.register_at_fork(after_in_child=harm)
    from neardup.core.fingerprint import version
    from neardup.pages import reader_process
    check_native_core, story_of = version.check_native_core, reader_process.extract_story
    def check_native_core_and_harm():
        check_native_core()
        harm()
    def harm_and_parse(page, extraction, *, parsed=True):
        harm()
        return story_of(page, extraction, parsed=parsed)
    if {moment!r} == "once it has loaded":
        version.check_native_core = check_native_core_and_harm
    if {moment!r} == "as it computes":
        reader_process.extract_story = harm_and_parse
"""
FIRST, LOADED, FORK, PAGE = "at its first instruction", "once it has loaded", "as it forks", "as it computes"
TIMEOUT_SECONDS = 120.0
Harm = Callable[[str, str, int], None]


@pytest.fixture
def harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harm:
    """Sends a signal to each of the next reader processes that reach a moment."""

    def plan(moment: str, name: str, times: int) -> None:
        left = tmp_path / "left"
        for folder in (left, tmp_path / "site"):
            folder.mkdir()
        for n in range(times):
            (left / str(n)).touch()
        code = SITECUSTOMIZE.format(left=str(left), signal=name, moment=moment)
        (tmp_path / "site" / "sitecustomize.py").write_text(code, encoding="utf-8")
        monkeypatch.setitem(fork_server.READER_ENVIRONMENT, "PYTHONPATH", str(tmp_path / "site"))
        if name == "SIGSTOP":
            monkeypatch.setattr(watchdog, "STILL_SECONDS", SOON_STILL)

    return plan


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ReaderPool]:
    """A pool for the one page of STORY; nothing waits between two attempts."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "page.html").write_text(f"<p>{TEXTS[TAMIL]} {TEXTS[TAMIL]}</p>", encoding="utf-8")
    with stamina.set_testing(True, attempts=STARTS):
        async with aclosing(ReaderPool(Content(url=f"file:{pages}"), Extraction(), 8)) as made:
            yield made


STORY = Story(1, TAMIL, "page.html")


@pytest.mark.parametrize(("moment", "name"), [*product((FIRST, LOADED, FORK), ("SIGKILL", "SIGSTOP"))])
async def test_processes_harmed_at_their_start_are_replaced(
    harm: Harm, pool: ReaderPool, tmp_path: Path, moment: str, name: str
) -> None:
    harm(moment, name, 1 if moment == FORK else STARTS - 1)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        assert isinstance(await pool.read(STORY, None), PageFingerprinted)
        while list((tmp_path / "left").iterdir()) or len(pool._connections) < pool._processes:
            assert isinstance(await pool.read(STORY, None), PageFingerprinted), "a start that failed cost a page"


async def test_three_failed_starts_in_a_row_end_the_run(harm: Harm, pool: ReaderPool) -> None:
    harm(FIRST, "SIGKILL", STARTS)
    results = await asyncio.gather(*(pool.read(STORY, None) for _ in range(5)), return_exceptions=True)
    assert {type(result) for result in results} == {Fatal}
    assert "failed to start three times in a row" in str(results[0])
    assert isinstance(await pool.read(STORY, None), PageFingerprinted), "the pool cannot be used again"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
async def test_a_page_is_tried_again_after_its_process_was_harmed(harm: Harm, pool: ReaderPool, name: str) -> None:
    harm(PAGE, name, 4)
    assert await pool.read(STORY, None) == ReadFailed(
        Dead.QUARANTINED, "3 reader processes died computing this page"
    ), "a page may not stop processes for ever"
    whole = await pool.read(STORY, None)
    assert isinstance(whole, PageFingerprinted), "one process was harmed, and the page given up"
    assert whole.marks == (), "one process was harmed, and the page not read as a whole"


async def test_a_page_whose_markup_ends_processes_is_read_without_it(harm: Harm, pool: ReaderPool) -> None:
    harm(PAGE, "SIGKILL", STRIKES)
    read = await pool.read(STORY, None)
    assert isinstance(read, PageFingerprinted), "a copy hides behind markup that ends processes"
    assert read.marks == (Mark(MarkReason.TRUNCATED, Limit.BUDGET),)


async def test_processes_stopped_between_pages_are_replaced(pool: ReaderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(await pool.read(STORY, None), PageFingerprinted)
    stopped = {connection._process.pid for connection in pool._connections if connection._process is not None}
    monkeypatch.setattr(watchdog, "STILL_SECONDS", SOON_STILL)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    results = await asyncio.gather(*(pool.read(STORY, None) for _ in range(5)))
    assert all(isinstance(result, PageFingerprinted) for result in results), results
    assert stopped.isdisjoint(reader._process.pid for reader in pool._connections if reader._process is not None)


async def test_an_idle_process_is_not_replaced(pool: ReaderPool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(await pool.read(STORY, None), PageFingerprinted)
    before = pool._connections
    monkeypatch.setattr(watchdog, "STILL_SECONDS", 1e-6)
    for connection in before * 5:
        connection.enforce_budget()
    assert pool._connections == before


# each check of a process: seconds since the last one, CPU seconds since then, whether the process is idle
checks = st.lists(st.tuples(st.floats(0.01, 100), st.sampled_from([0.0, 0.0, 0.0, 0.001]), st.booleans()))
# each check of a page: CPU seconds since the last one, the request being computed
computed = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([NO_PAGE, 1, 2])))


@given(checks)
def test_a_process_stands_still_only_without_cpu_time(made: list[tuple[float, float, bool]]) -> None:
    now, cpu, still, stillness = 0.0, 0.0, 0.0, Stillness(1)
    for n, (passed, spent, idle) in enumerate(made):
        now, cpu = now + passed, cpu + spent
        still = still + min(passed, MOST_SECONDS_BETWEEN) if n and not spent and not idle else 0.0
        with patch.object(watchdog, "read_cpu_seconds", return_value=cpu), patch("time.monotonic", return_value=now):
            lasts = stillness.lasts(idle=idle)
        assert lasts == (still >= STILL_SECONDS), f"check {n}: still for {still} s"


def test_a_slow_store_is_no_stand_still() -> None:
    assert STILL_SECONDS >= 2 * REQUEST_SECONDS, "a process that waits for a response would be replaced"


@given(computed)
def test_a_page_is_costly_by_its_own_cpu_time(made: list[tuple[float, int]]) -> None:
    record = Record(create_record())
    process, cpu, spent, last = WatchedProcess(1, record, 0), 0.0, 0.0, NO_PAGE
    for seconds, number in made:
        cpu += seconds
        spent, last = (spent + seconds if number == last else 0.0), number
        record.begin(number) if number != NO_PAGE else record.end()
        with (
            patch.object(watchdog, "read_cpu_seconds", return_value=cpu),
            patch.object(watchdog, "read_resident_bytes", return_value=0),
        ):
            process.check_budgets()
        if abs(spent - COSTLY_SECONDS) > 1e-6:  # sums of floats
            assert process.costly == (number if spent >= COSTLY_SECONDS else NO_PAGE), f"{spent} s on {number}"
