"""Dead letters are listed, counted, retried and dropped; a page that kills is read twice and then no more, and nobody
who was in hand beside it pays for it.
"""

import csv
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import stamina

from daemon.ledger import dead_letters
from daemon.ledger.dead_letters import Choice
from daemon.ledger.in_flight import SUSPICIOUS_NS, InFlight
from daemon.records import Dead, DeadLettered, Language, Skip, Skipped, Story
from tests.conftest import ROOT, SAMPLES, Ended, Neardup, embedded
from tests.faults.bed import BUCKET, PATHS, Bed, configuration, served_samples
from tests.faults.proxy import Fault, Proxy
from tests.made import commit, ledger_in_memory, made

Make = Callable[..., Neardup]
STORIES = len(PATHS)
KILLER = 4104000
# Runs at the start of every process that finds it on its path: the page of this story ends the one that parses it.
SITECUSTOMIZE = """
import os, signal, sys
if any("daemon.reading" in word for word in sys.orig_argv):
    from daemon import reading
    parse = reading.read_page
    def read_page(document, *others):
        if b"POISON" in document.body:
            {crime}
        return parse(document, *others)
    reading.read_page = read_page
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL)"
RAISES = "raise RecursionError('too deep')"


@pytest.fixture
def poisoned(make_neardup: Make, tmp_path: Path) -> Callable[[str], Neardup]:
    """The samples as files, one of them poison."""

    def make(crime: str) -> Neardup:
        pages = tmp_path / "pages"
        for path in (SAMPLES / "stories").rglob("*.html"):
            copy = pages / path.relative_to(SAMPLES / "stories")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
        page = pages / "TAMIL" / f"{KILLER}.html"
        page.write_bytes(page.read_bytes() + b"<!-- POISON -->")
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE.format(crime=crime))
        neardup = make_neardup(embedded(stories=pages))
        neardup.env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "site"), str(ROOT)])
        return neardup

    return make


def cure(neardup: Neardup) -> None:
    """The program that is no longer killed by it."""
    neardup.env["PYTHONPATH"] = str(ROOT)


def listed(neardup: Neardup, *arguments: str) -> dict[str, Any]:
    ended = neardup("dead-letters", "--json", *arguments)
    assert ended.code == 0, ended.err
    return dict(ended.facts)


def test_a_page_that_kills_is_quarantined_and_its_neighbours_are_read(
    poisoned: Callable[[str], Neardup], make_neardup: Make
) -> None:
    neardup = poisoned(DIES)
    ended = neardup("backfill", "--json")
    assert ended.facts["fingerprinted"] == STORIES - 1, ended.err
    assert ended.facts["dead_lettered"] == {"quarantined": 1}
    assert ended.err.count("a reading process died") == 2, "read twice, and then no more"
    again = neardup("backfill", "--json")
    assert again.facts["dead_lettered"] == {"quarantined": 1}, "it stays in quarantine"
    assert "a reading process died" not in again.err
    assert neardup("retry", "--json").facts["listed"] == 0, "it is left alone by a retry that does not name it"
    named = neardup("retry", str(KILLER), "--json")
    assert named.facts["dead_lettered"] == {"quarantined": 1}
    assert named.err.count("a reading process died") == 1, "suspects are read alone, and that settles it"
    cure(neardup)
    assert neardup("retry", "--reason", "quarantined", "--json").facts["fingerprinted"] == 1
    assert listed(neardup) == {"by_reason": {}, "dead_letters": []}
    whole = make_neardup(embedded(), "whole")
    assert whole("backfill").code == 0
    assert Bed(neardup.folder).state() == Bed(whole.folder).state()


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
    assert listed(neardup)["by_reason"] == {}


def test_a_story_whose_processing_raises_is_tried_twice(poisoned: Callable[[str], Neardup]) -> None:
    neardup = poisoned(RAISES)
    ended = neardup("backfill", "--json")
    assert (ended.facts["fingerprinted"], ended.facts["dead_lettered"]) == (STORIES - 1, {"crashed": 1})
    assert ended.err.count("RecursionError: too deep") >= 2
    [letter] = listed(neardup)["dead_letters"]
    assert (letter["key"], letter["error"]) == (str(KILLER), "RuntimeError: RecursionError: too deep")
    cure(neardup)
    assert neardup("retry", "--json").facts["fingerprinted"] == 1


# A story that was in flight when the daemon died.


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with served_samples() as made_proxy:
        yield made_proxy


@pytest.fixture
def served(proxy: Proxy, make_neardup: Make) -> Neardup:
    neardup = make_neardup(configuration(proxy.endpoint))
    neardup.env.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    return neardup


HELD = f"/{BUCKET}/TAMIL/{KILLER}.html"


@contextmanager
def at_work(neardup: Neardup) -> Iterator[subprocess.Popen[str]]:
    command = neardup.command("backfill")
    with subprocess.Popen(command, cwd=neardup.folder, env=neardup.env, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def kill_in_flight(neardup: Neardup, proxy: Proxy) -> None:
    """SIGKILL for the daemon once the held story has been in flight for long enough to be suspected."""
    before = proxy.asked[HELD]

    @stamina.retry(on=AssertionError, timeout=60, wait_initial=0.05, wait_max=0.05, attempts=None)
    def wait_for_suspicion() -> None:
        assert proxy.asked[HELD] > before
        words = memoryview((neardup.folder / "neardup.db.reading").read_bytes()).cast("Q")
        held = zip(words[1::2], words[2::2], strict=True)
        assert any(who == KILLER + 1 and words[0] - since >= SUSPICIOUS_NS for who, since in held)

    with at_work(neardup) as process:
        wait_for_suspicion()
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL


def test_a_story_in_flight_at_two_deaths_of_the_daemon_is_quarantined(served: Neardup, proxy: Proxy) -> None:
    proxy.plan({HELD: [Fault.SILENT, Fault.SILENT]})
    kill_in_flight(served, proxy)
    kill_in_flight(served, proxy)
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {"quarantined": 1}, ended.err
    [letter] = listed(served)["dead_letters"]
    assert (letter["key"], letter["reason"]) == (str(KILLER), "quarantined")
    assert "2 deaths of the daemon" in str(letter["error"])
    assert sum(served("status", "--json").facts["stories"].values()) == STORIES - 1, "and nobody else"
    assert served("retry", str(KILLER), "--json").facts["fingerprinted"] == 1
    assert served("backfill", "--json").facts["dead_lettered"] == {}


def test_a_story_in_flight_at_one_death_is_read(served: Neardup, proxy: Proxy) -> None:
    proxy.plan({HELD: [Fault.SILENT]})
    kill_in_flight(served, proxy)
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {}, ended.err
    assert sum(served("status", "--json").facts["stories"].values()) == STORIES
    with closing(sqlite3.connect(served.ledger)) as db:
        assert dead_letters.suspects(db) == {}, "it had its outcome"
    assert not (served.folder / "neardup.db.reading").exists()


def test_who_had_just_come_is_no_suspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ledger = [0], tmp_path / "neardup.db"
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    largest = 2**63 - 1
    with ExitStack() as stack:
        died = InFlight(ledger, 4)
        stack.enter_context(died.reading(0))
        with died.reading(7):
            pass
        clock[0] += SUSPICIOUS_NS // 2
        stack.enter_context(died.reading(largest))
        clock[0] += SUSPICIOUS_NS // 2
        died.beat()
        held = ledger.with_name("neardup.db.reading").read_bytes()
    assert InFlight(ledger, 4).left == [], "who has been read is not there"
    for data, most, left in ((held, 2, [0]), (held + b"xyz", 9, [0]), (held[:-3], 9, []), (b"", 1, [])):
        ledger.with_name("neardup.db.reading").write_bytes(data)
        assert InFlight(ledger, most).left == left
        assert InFlight(ledger, most).left == [], "once for one death"


# The commands.


@pytest.fixture
def with_letters(proxy: Proxy, served: Neardup) -> tuple[Neardup, Ended]:
    """A backfill that left letters of three reasons."""
    of = {path: [Fault.DENIED] for path in PATHS[:3]} | {PATHS[9]: [Fault.NOT_FOUND]}
    proxy.plan(of | {PATHS[20]: [Fault.INTERNAL] * 5})
    rows = (SAMPLES / "manifest.csv").read_text(encoding="utf-8") + "twelve,hi,,,,\n"
    manifest = served.folder / "manifest.csv"
    manifest.write_text(rows, encoding="utf-8")
    served.configure(configuration(proxy.endpoint, manifest))
    ended = served("backfill", "--json")
    assert ended.facts["dead_lettered"] == {"bad_id": 1, "forbidden": 3, "store_error": 1}, ended.err
    assert ended.facts["skipped"] == {"missing": 1}
    return served, ended


def test_letters_are_listed_retried_and_dropped(with_letters: tuple[Neardup, Ended]) -> None:
    neardup, _ = with_letters
    every = listed(neardup)
    assert every["by_reason"] == {"bad_id": 1, "forbidden": 3, "missing": 1, "store_error": 1}
    assert neardup("status", "--json").facts["dead_letters"] == every["by_reason"]
    keys = [letter["key"] for letter in every["dead_letters"]]
    row = next(str(key) for key in keys if str(key).startswith("row:"))
    refused = listed(neardup, "--reason", "forbidden")
    assert refused["by_reason"] == {"forbidden": 3} and len(refused["dead_letters"]) == 3
    one = refused["dead_letters"][0]
    assert one["attempts"] == 1 and str(one["first_at"]).endswith("Z") and one["story"]["id"] == int(str(one["key"]))
    shown = neardup("dead-letters").out
    assert "6  (bad_id 1, forbidden 3, missing 1, store_error 1)" in shown and "AccessDenied" in shown

    for arguments, word in (
        (["retry", "99"], "no dead letter 99"),
        (["retry", row], "names no story"),
        (["dead-letters", "--drop"], "which?"),
        (["retry", "--reason", "boredom"], "boredom"),
    ):
        ended = neardup(*arguments)
        assert ended.code == 2 and word in ended.err, (arguments, ended.err)

    assert neardup("retry", str(one["key"]), "--json").facts["fingerprinted"] == 1
    assert listed(neardup)["by_reason"]["forbidden"] == 2
    retried = neardup("retry", "--json").facts
    assert (retried["listed"], retried["fingerprinted"], retried["dead_lettered"]) == (4, 4, {})
    assert listed(neardup)["by_reason"] == {"bad_id": 1}, "a row that names no story is for somebody to mend"
    assert neardup("dead-letters", "--drop", "--reason", "bad_id").out == "1 dead letters are dropped\n"
    assert neardup("dead-letters").out == "No dead letters.\n"


def test_a_retry_moves_no_watermark(with_letters: tuple[Neardup, Ended]) -> None:
    neardup, _ = with_letters
    before = neardup("status", "--json").facts["watermark"]
    assert neardup("retry").code == 0
    after = neardup("status", "--json").facts
    assert after["watermark"] == before is not None
    assert after["runs"][0]["command"] == "retry"


def test_what_fails_again_is_counted_and_stays(with_letters: tuple[Neardup, Ended], proxy: Proxy) -> None:
    neardup, _ = with_letters
    proxy.plan({PATHS[0]: [Fault.DENIED]})
    assert neardup("retry", "--reason", "forbidden", "--json").facts["dead_lettered"] == {"forbidden": 1}
    [letter] = listed(neardup, "--reason", "forbidden")["dead_letters"]
    assert letter["attempts"] == 2


def test_more_letters_than_a_page_are_all_retried() -> None:
    db = ledger_in_memory()
    ids = range(3 * dead_letters.PAGE)
    commit(db, *(DeadLettered(Story(n, Language.ODIA, title="ଶୀର୍ଷକ"), Dead.STORE_ERROR, "why") for n in ids))
    found: list[Story] = []
    while page := dead_letters.retriable(db, Choice(), found[-1].key if found else ""):
        found += page
    assert sorted(story.id for story in found) == list(ids)
    assert found[0].title == "ଶୀର୍ଷକ" and found[0].language is Language.ODIA


def test_an_outcome_acquits() -> None:
    db = ledger_in_memory()
    dead_letters.suspect(db, [1, 2, 3, 4])
    dead_letters.suspect(db, [2, 3])
    assert dead_letters.suspects(db) == {1: 1, 2: 2, 3: 2, 4: 1}
    commit(
        db,
        made(1, 1),
        Skipped(Story(2, Language.HINDI), Skip.EMPTY),
        DeadLettered(Story(3, Language.HINDI), Dead.QUARANTINED, "why"),
    )
    assert dead_letters.suspects(db) == {4: 1}
