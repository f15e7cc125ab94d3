"""A page that kills its reader is read twice and then quarantined; stories read beside it are not affected."""

import csv
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import stamina
from neardup.core.page import PageFingerprinted
from neardup.ledger import Ledger, dead_letters
from neardup.pages.in_flight import SUSPICIOUS_NS, InFlight
from neardup.pages.results import NotModified, PageResult
from neardup.pipeline.quarantine import Quarantine
from neardup.pipeline.worker import Worker
from neardup.records import Dead, DeadLettered, Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of
from tests.support.command import Neardup, embedded
from tests.support.faults.bed import BUCKET, PATHS, Bed, listed_letters
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.faults.fault_table import AssertSameState
from tests.support.languages import TAMIL
from tests.support.paths import ROOT, SAMPLES

Make = Callable[..., Neardup]
STORIES = len(PATHS)
KILLER = 4104000
# Python runs this at the start of a process that has it on its path; the poisoned page kills the process parsing it.
SITECUSTOMIZE = """
import os, signal, sys
if any("neardup.pages.reader_process" in word for word in sys.orig_argv):
    from neardup.pages import reader_process
    parse = reader_process.text_of
    def text_of(page, extraction):
        if b"POISON" in page.body:
            {effect}
        return parse(page, extraction)
    reader_process.text_of = text_of
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL)"
RAISES = "raise RecursionError('too deep')"


@pytest.fixture
def poisoned(make_neardup: Make, tmp_path: Path) -> Callable[[str], Neardup]:
    """The samples as files; one page has the given effect on the process that parses it."""

    def make(effect: str) -> Neardup:
        pages = tmp_path / "pages"
        for path in (SAMPLES / "stories").rglob("*.html"):
            copy = pages / path.relative_to(SAMPLES / "stories")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
        page = pages / "TAMIL" / f"{KILLER}.html"
        page.write_bytes(page.read_bytes() + b"<!-- POISON -->")
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE.format(effect=effect))
        neardup = make_neardup(embedded(stories=pages))
        neardup.env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "site"), str(ROOT)])
        return neardup

    return make


def use_normal_program(neardup: Neardup) -> None:
    """Run neardup without the poisoned parser from now on."""
    neardup.env["PYTHONPATH"] = str(ROOT)


def test_a_page_that_kills_is_quarantined_alone(
    poisoned: Callable[[str], Neardup], make_neardup: Make, assert_same_state: AssertSameState
) -> None:
    neardup = poisoned(DIES)
    ended = neardup("backfill", "--json")
    assert ended.facts["fingerprinted"] == STORIES - 1, ended.err
    assert ended.facts["dead_lettered"] == {"quarantined": 1}
    assert ended.err.count("a reader process died") == 2, "the page was not read exactly twice"
    again = neardup("backfill", "--json")
    assert again.facts["dead_lettered"] == {"quarantined": 1}, "the page left quarantine"
    assert "a reader process died" not in again.err
    assert neardup("retry", "--json").facts["listed"] == 0, "a retry read a quarantined page that it did not name"
    named = neardup("retry", str(KILLER), "--json")
    assert named.facts["dead_lettered"] == {"quarantined": 1}
    assert named.err.count("a reader process died") == 2, "the named page was not tried twice"
    use_normal_program(neardup)
    assert neardup("retry", "--reason", "quarantined", "--json").facts["fingerprinted"] == 1
    assert listed_letters(neardup) == {"by_reason": {}, "dead_letters": []}
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    assert_same_state(
        "a page that kills its reader process", 4, 4, Bed(neardup.folder).state(), Bed(whole.folder).state()
    )


def test_an_edited_story_leaves_quarantine(poisoned: Callable[[str], Neardup], tmp_path: Path) -> None:
    neardup = poisoned(DIES)
    assert neardup("backfill", "--json").facts["dead_lettered"] == {"quarantined": 1}
    with (SAMPLES / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    edited = tmp_path / "edited.csv"
    with edited.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        later = "2026-01-01T00:00:00Z"
        writer.writerows(row | {"updated_at": later} for row in rows if row["id"] == str(KILLER))
    page = tmp_path / "pages" / "TAMIL" / f"{KILLER}.html"
    page.write_bytes(page.read_bytes().replace(b"POISON", b"cured"))
    ended = neardup("daily", "--json", NEARDUP_SOURCE__MANIFEST=str(edited))
    assert ended.facts["fingerprinted"] == 1, ended.err
    assert listed_letters(neardup)["by_reason"] == {}


def test_a_story_whose_processing_raises_is_tried_twice(poisoned: Callable[[str], Neardup]) -> None:
    neardup = poisoned(RAISES)
    ended = neardup("backfill", "--json")
    assert (ended.facts["fingerprinted"], ended.facts["dead_lettered"]) == (STORIES - 1, {"crashed": 1})
    assert ended.err.count("RecursionError: too deep") >= 2
    [letter] = listed_letters(neardup)["dead_letters"]
    assert (letter["key"], letter["error"]) == (str(KILLER), "RecursionError: too deep")
    use_normal_program(neardup)
    assert neardup("retry", "--json").facts["fingerprinted"] == 1


async def test_a_story_whose_processing_raised_once_is_fingerprinted() -> None:
    answers: list[PageResult | Exception] = [
        RecursionError("too deep"),
        PageFingerprinted(fingerprint_of(bytes(16)), None, 0),
    ]

    async def known(_: int) -> None:
        return None

    async def read(*_: object) -> PageResult:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    _, outcome = await Worker(known, read).process(Story(1, TAMIL))
    assert isinstance(outcome, Fingerprinted) and not answers


# A story that was in flight when the daemon died.


SLOW_PAGE = f"/{BUCKET}/TAMIL/{KILLER}.html"


@contextmanager
def backfilling(neardup: Neardup) -> Iterator[subprocess.Popen[str]]:
    command = neardup.command("backfill")
    with subprocess.Popen(command, cwd=neardup.folder, env=neardup.env, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def kill_in_flight(neardup: Neardup, proxy: Proxy) -> None:
    """Kill the daemon once the story of the slow page has been in flight long enough to be suspected."""
    before = proxy.requests[SLOW_PAGE]

    @stamina.retry(on=AssertionError, timeout=60, wait_initial=0.05, wait_max=0.05, attempts=None)
    def wait_for_suspicion() -> None:
        assert proxy.requests[SLOW_PAGE] > before
        words = memoryview((neardup.folder / "neardup.db.reading").read_bytes()).cast("Q")
        slots = zip(words[1::2], words[2::2], strict=True)
        assert any(slot == KILLER + 1 and words[0] - since >= SUSPICIOUS_NS for slot, since in slots)

    with backfilling(neardup) as process:
        wait_for_suspicion()
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL


def test_a_story_in_flight_at_two_deaths_is_quarantined(served: Neardup, proxy: Proxy) -> None:
    proxy.plan({SLOW_PAGE: [Fault.SILENT, Fault.SILENT]})
    kill_in_flight(served, proxy)
    kill_in_flight(served, proxy)
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {"quarantined": 1}, ended.err
    [letter] = listed_letters(served)["dead_letters"]
    assert (letter["key"], letter["reason"]) == (str(KILLER), "quarantined")
    assert "2 deaths of the daemon" in str(letter["error"])
    assert sum(served("status", "--json").facts["stories"].values()) == STORIES - 1, "another story was lost"
    assert served("retry", str(KILLER), "--json").facts["fingerprinted"] == 1
    assert served("backfill", "--json").facts["dead_lettered"] == {}


def test_a_story_in_flight_at_one_death_is_read(
    served: Neardup, proxy: Proxy, make_neardup: Make, assert_same_state: AssertSameState
) -> None:
    proxy.plan({SLOW_PAGE: [Fault.SILENT]})
    kill_in_flight(served, proxy)
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {}, ended.err
    assert sum(served("status", "--json").facts["stories"].values()) == STORIES
    with closing(sqlite3.connect(served.ledger)) as db:
        assert dead_letters.suspects(db) == {}, "a story with an outcome is still suspected"
    assert not (served.folder / "neardup.db.reading").exists()
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    assert_same_state("SIGKILL while a slow page is read", 1, 1, Bed(served.folder).state(), Bed(whole.folder).state())


async def test_a_suspect_is_read_alone(tmp_path: Path) -> None:
    ledger, alone = Ledger(tmp_path / "neardup.db"), dict[int, bool]()
    await ledger.do(dead_letters.suspect, [1])
    await ledger.do(commit, DeadLettered(Story(2, TAMIL), Dead.QUARANTINED, "why"))

    async def read(story: Story, _: str | None, **options: Any) -> PageResult:
        alone[story.id] = options["alone"]
        return NotModified()

    async with Quarantine(ledger, read, 2, retry=True) as quarantine:
        for story_id in (1, 2, 3):
            await quarantine.read(Story(story_id, TAMIL), None)
    ledger.close()
    assert alone == {1: True, 2: True, 3: False}


def test_a_story_that_has_just_begun_is_not_suspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ledger = [0], tmp_path / "neardup.db"
    monkeypatch.setattr("neardup.pages.in_flight.time.monotonic_ns", lambda: clock[0])
    largest = 2**63 - 1
    with ExitStack() as stack:
        killed = InFlight(ledger, 4)
        stack.enter_context(killed.reading(0))
        with killed.reading(7):
            pass
        clock[0] += SUSPICIOUS_NS // 2
        stack.enter_context(killed.reading(largest))
        clock[0] += SUSPICIOUS_NS // 2
        killed.beat()
        held = ledger.with_name("neardup.db.reading").read_bytes()
    assert InFlight(ledger, 4).suspects == [], "a story that was read is still recorded"
    for data, most, left in ((held, 2, [0]), (held + b"xyz", 9, [0]), (held[:-3], 9, []), (b"", 1, [])):
        ledger.with_name("neardup.db.reading").write_bytes(data)
        assert InFlight(ledger, most).suspects == left
        assert InFlight(ledger, most).suspects == [], "one death counted twice"
