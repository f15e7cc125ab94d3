"""A death of the daemon is blamed on a story only while a running reader process computes its page, at a high cost.  A
ledger has one daemon: a second one refuses to start and names the first, and can start once that has died.

A daemon killed while its reader processes start blames no story.
"""

import asyncio
import json
import random
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
import stamina
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.columns import StoryColumns
from neardup.errors import Fatal
from neardup.ledger import Ledger, dead_letters, files, lock
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import Deliver, NotModified, PageResult, PagesRead, make_results
from neardup.pipeline.quarantine import InFlight, Quarantine
from neardup.records import Dead, DeadLettered, Story

from tests.support.builders import commit
from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.faults.bed import PATHS, Bed, configuration, listed_letters, over_s3
from tests.support.faults.command_driver import kill_with_readers
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.faults.fault_table import AssertSameState, Row, find_crashed, find_said, make_row
from tests.support.faults.hostile_pages import KILLER, SPINS, use_normal_program
from tests.support.forked_command import ForkedProcess
from tests.support.languages import TAMIL
from tests.support.sampling import CHAOS
from tests.support.servers import free_port
from tests.support.service import running

Make = Callable[..., Neardup]
STORIES = len(PATHS)
WITHHELD_SECONDS = 1.5  # longer than a page may be computed without being blamed


@contextmanager
def backfilling(neardup: Neardup) -> Iterator[ForkedProcess]:
    with neardup.start("backfill", env={}) as process:
        try:
            yield process
        finally:
            kill_with_readers(process)


def kill_in_flight(neardup: Neardup) -> None:
    """Kill the daemon once the story of the endless page is on record, and no longer of the last death."""
    record = neardup.folder / "neardup.db.reading"

    @stamina.retry(on=AssertionError, timeout=240, wait_initial=0.05, wait_max=0.05, attempts=None)
    def wait_until(*, recorded: bool) -> None:
        words = memoryview(record.read_bytes()).cast("Q") if record.exists() else memoryview(b"")
        assert (KILLER + 1 in list(words)) == recorded

    with backfilling(neardup) as process:
        wait_until(recorded=False)
        wait_until(recorded=True)
        kill_with_readers(process)
        assert process.returncode == -signal.SIGKILL


def test_a_story_in_flight_at_two_deaths_is_quarantined(poisoned: Callable[[str], Neardup]) -> None:
    neardup = poisoned(SPINS)
    kill_in_flight(neardup)
    kill_in_flight(neardup)
    use_normal_program(neardup)
    ended = neardup("backfill", "--json")
    assert ended.facts["dead_lettered"] == {"quarantined": 1}, ended.err
    [letter] = listed_letters(neardup)["dead_letters"]
    assert (letter["key"], letter["reason"]) == (str(KILLER), "quarantined")
    assert "2 deaths of the daemon" in str(letter["error"])
    assert sum(neardup("status", "--json").facts["stories"].values()) == STORIES - 1, "another story was lost"
    assert neardup("retry", str(KILLER), "--json").facts["fingerprinted"] == 1
    assert neardup("backfill", "--json").facts["dead_lettered"] == {}


def test_a_story_in_flight_at_one_death_is_read(
    poisoned: Callable[[str], Neardup], make_neardup: Make, assert_same_state: AssertSameState
) -> None:
    neardup = poisoned(SPINS)
    kill_in_flight(neardup)
    use_normal_program(neardup)
    ended = neardup("backfill", "--json")
    assert ended.facts["dead_lettered"] == {}, ended.err
    assert sum(neardup("status", "--json").facts["stories"].values()) == STORIES
    with closing(sqlite3.connect(neardup.ledger)) as db:
        assert dead_letters.count_interruptions(db) == {}, "a story with an outcome is still interrupted"
    assert not (neardup.folder / "neardup.db.reading").exists()
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    said, states = find_crashed(neardup.ledger, 1), (Bed(neardup.folder).state(), Bed(whole.folder).state())
    assert_same_state("SIGKILL while a slow page is computed", 1, 1, *states, said=said)


def test_a_story_whose_page_the_store_withholds_is_not_blamed(
    served: Neardup, proxy: Proxy, assert_same_state: AssertSameState, make_neardup: Make
) -> None:
    proxy.plan({path: [Fault.SILENT, Fault.SILENT] for path in PATHS})
    for _ in range(2):
        before = sum(proxy.requests.values())

        @stamina.retry(on=AssertionError, timeout=240, wait_initial=0.05, wait_max=0.05, attempts=None)
        def wait_for_requests(before: int = before) -> None:
            assert sum(proxy.requests.values()) > before

        with backfilling(served) as process:
            wait_for_requests()
            with suppress(subprocess.TimeoutExpired):
                process.wait(WITHHELD_SECONDS)
    proxy.plan({})
    ended = served("backfill", "--json")
    assert (ended.facts["fingerprinted"], ended.facts["dead_lettered"]) == (STORIES, {}), ended.err
    whole = over_s3(make_neardup(configuration(proxy.endpoint), "whole"))
    assert whole("backfill").code == 0
    said, states = find_crashed(served.ledger, 2), (Bed(served.folder).state(), Bed(whole.folder).state())
    assert_same_state("SIGKILL while the store is silent", 2, 2, *states, said=said)


async def test_an_interrupted_story_is_read_alone(tmp_path: Path) -> None:
    ledger, asked, results = Ledger(tmp_path / "neardup.db"), dict[int, bool](), list[int]()
    await ledger.do(dead_letters.add_interrupted, [1])
    await ledger.do(commit, DeadLettered(Story(2, TAMIL), Dead.QUARANTINED, "why"))

    class Readers:
        costly_stories = ()

        async def read(self, story: Story, etag: str | None, *, alone: bool) -> PageResult:
            asked[story.id] = alone
            return NotModified()

        async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
            asked.update(dict.fromkeys(stories.ids, False))
            await deliver(make_results([(story, NotModified()) for story in stories.stories()]))

    async def keep(read: PagesRead) -> None:
        results.extend(read.ids)

    async with Quarantine(ledger, cast("ReaderPool", Readers()), retry=True) as quarantine:
        listed = StoryColumns.of(Story(story_id, TAMIL) for story_id in (1, 2, 3))
        await quarantine.read_all(listed, [None] * 3, keep)
    ledger.close()
    assert asked == {1: True, 2: True, 3: False}
    assert sorted(results) == [1, 2, 3]


async def test_no_pages_are_begun_while_a_suspect_waits_for_its_turn(tmp_path: Path) -> None:
    ledger, begun, may_end = Ledger(tmp_path / "neardup.db"), list[int](), asyncio.Event()
    await ledger.do(dead_letters.add_interrupted, [1])

    class Readers:
        costly_stories = ()

        async def read(self, story: Story, etag: str | None, *, alone: bool) -> PageResult:
            await may_end.wait()
            begun.append(story.id)
            return NotModified()

        async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
            begun.extend(stories.ids)

    async def ignore(read: PagesRead) -> None:
        pass

    async with (
        Quarantine(ledger, cast("ReaderPool", Readers()), retry=True) as quarantine,
        asyncio.TaskGroup() as tasks,
    ):
        for story_id in (1, 2):
            tasks.create_task(quarantine.read_all(StoryColumns.of([Story(story_id, TAMIL)]), [None], ignore))
        await asyncio.sleep(0)
        may_end.set()
    ledger.close()
    assert begun == [1, 2]


story_ids = st.integers(0, 2**63 - 1) | st.integers(-(2**63), -2)  # works have negative ones
stories = st.lists(story_ids, max_size=4, unique=True)


@given(st.lists(stories), st.lists(story_ids), st.integers(0, 7), st.integers(1, 9))
def test_the_record_of_a_killed_daemon_is_read_once(
    recorded: list[list[int]], ended: list[int], cut: int, most: int
) -> None:
    with TemporaryDirectory() as folder:
        ledger = Path(folder) / "neardup.db"
        killed = InFlight(ledger, 4)
        for ids in recorded:
            killed.replace(ids)
        killed.remove(ended)
        file = ledger.with_name("neardup.db.reading")
        held = file.read_bytes() + b"x" * cut
        killed.close()
        assert not file.exists()
        file.write_bytes(held)
        assert set(InFlight(ledger, most).interrupted) == set(recorded[-1] if recorded else []) - set(ended)
        assert InFlight(ledger, most).interrupted == [], "one death counted twice"


def test_the_second_daemon_names_the_first_and_takes_over(neardup: Neardup) -> None:
    with running(neardup, f"127.0.0.1:{free_port()}") as (first, systemd):
        systemd.wait_for("STATUS=next run at")
        assert_one_line(neardup("run"), 75, f"the ledger has a daemon: neardup run, process {first.pid}, since 20")
        assert neardup("daily", "--json").facts["status"] == "done", "other commands work between its runs"
        first.send_signal(signal.SIGKILL)
        first.wait()
        (neardup.folder / "notify.sock").unlink()
        with running(neardup, f"127.0.0.1:{free_port()}") as (second, notifications):
            notifications.wait_for("STATUS=next run at")
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0


def test_the_refusal_is_json_under_systemd(neardup: Neardup, record_row: Callable[[Row], None]) -> None:
    with lock.only_daemon(neardup.ledger):
        ended = neardup("run", JOURNAL_STREAM="8:15")
    [line] = map(json.loads, ended.err.splitlines())
    assert (ended.code, line["level"], line["event"]) == (75, "error", "failed")
    assert "the ledger has a daemon: neardup run, process " in line["why"]
    record_row(make_row("daemon: a second one", 1, find_said("the ledger has a daemon", line["why"])))


def test_a_lock_whose_holder_cannot_be_named_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the name of the holder cannot be written."""
    monkeypatch.setattr(files, "name_beside", lambda suffix, ledger: Path("/dev/full"))
    with pytest.raises(Fatal, match="cannot lock the ledger: /dev/full: "), lock.only_one(tmp_path / "l.db", "daily"):
        pass


SEED = 15
KILLS = 6 * CHAOS if CHAOS > 1 else 3
SPAN_SECONDS = 3.0  # from the start of a command on: reader processes start within it


def kill_times(rng: random.Random) -> list[float]:
    """One random time in each of KILLS equal parts of the span, the first in the first millisecond."""
    return [0.001 * rng.random(), *(SPAN_SECONDS * (n + rng.random()) / KILLS for n in range(1, KILLS))]


@contextmanager
def starting(neardup: Neardup) -> Iterator[subprocess.Popen[bytes]]:
    """A backfill that is killed with its reader processes at the end of the context."""
    with subprocess.Popen(
        neardup.command("backfill"),
        cwd=neardup.folder,
        env=neardup.env,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            kill_with_readers(process)


def test_a_kill_at_any_time_of_a_start_is_blamed_on_no_story(
    neardup: Neardup, tmp_path: Path, make_neardup: Callable[[str, str], Neardup], assert_same_state: AssertSameState
) -> None:
    record, copy = neardup.folder / "neardup.db.reading", tmp_path / "copy.reading"
    for seconds in kill_times(random.Random(SEED)):
        with starting(neardup) as process, suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        if record.exists():
            shutil.copy(record, copy)
            found = InFlight(tmp_path / "copy", 1000).interrupted
            assert found == [], f"killed after {seconds:.3f} s, which is no fault of {len(found)} stories"
    ended = neardup("backfill", "--json")
    held = sum(neardup("status", "--json").facts["stories"].values())  # a late kill leaves some done
    assert (held, ended.facts["dead_lettered"]) == (len(PATHS), {}), ended.err
    assert listed_letters(neardup)["dead_letters"] == []
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    states = Bed(neardup.folder).state(), Bed(whole.folder).state()
    said = find_crashed(neardup.ledger, KILLS)
    assert_same_state("SIGKILL while reader processes start", KILLS, len(PATHS), *states, said=said)
