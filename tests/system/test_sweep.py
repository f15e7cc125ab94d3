"""A sweep flags what a backfill flags, in any order of the stories, after interruptions, and without an index."""

import asyncio
import csv
import json
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from neardup.app import open_ledger, sweep
from neardup.config import load
from neardup.ledger import lock
from neardup.pipeline.summary import SweepSummary, Watch, ignore_progress

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.generated_stories import configuration, generate
from tests.support.languages import SAMPLED
from tests.support.paths import SAMPLES
from tests.support.servers import free_port
from tests.system.test_backfill import drive

Make = Callable[..., Neardup]
Flags = dict[tuple[int, int], list[Any]]
ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
SCORES = ("kind", "language", "hamming", "jaccard", "containment", "matched_containment", "longest_run_words")


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """The samples after a backfill."""
    neardup = Neardup(tmp_path_factory.mktemp("backfilled"), {})
    neardup.configure(embedded())
    assert neardup("backfill").code == 0
    return neardup


@pytest.fixture(scope="module")
def before(backfilled: Neardup) -> Flags:
    """The flags of the backfill."""
    return flagged(backfilled)


@pytest.fixture
def neardup(neardup: Neardup, backfilled: Neardup) -> Neardup:
    """The samples after a backfill, without flags."""
    shutil.copytree(backfilled.folder, neardup.folder, dirs_exist_ok=True)
    forget_flags(neardup)
    return neardup


def flagged(neardup: Neardup) -> Flags:
    """The open flags with their scores."""
    done = neardup("export", "--format", "jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.split("\n")[:-1]]
    return {(row["story_id"], row["matched_id"]): [row[name] for name in SCORES] for row in rows}


def forget_flags(neardup: Neardup) -> None:
    """Remove flags and candidates from the ledger."""
    db = sqlite3.connect(neardup.ledger)
    for table in ("flags", "candidates"):
        db.execute(f"DELETE FROM {table}")
    db.commit()
    db.close()


def swept(neardup: Neardup, stop: asyncio.Event | None = None, watch: Watch = ignore_progress) -> SweepSummary:
    """Sweep in this process."""

    async def go() -> SweepSummary:
        config = load(neardup.folder / "config.toml")
        with open_ledger(config) as ledger:
            return await sweep(config, ledger, stop or asyncio.Event(), watch)

    return asyncio.run(go())


def swept_in_part(neardup: Neardup) -> SweepSummary:
    """Sweep, and stop at the first flags, when the first language has been completed."""
    stop = asyncio.Event()
    return swept(neardup, stop, lambda progress: stop.set() if progress.counts.flagged else None)


def test_a_sweep_flags_what_the_backfill_flagged(neardup: Neardup, before: Flags) -> None:
    assert {scores[1] for scores in before.values()} == set(SAMPLED), "a language has no flags"
    done = neardup("sweep", "--json")
    assert done.code == 0, done.err
    assert flagged(neardup) == before
    facts = done.facts
    assert list(facts) == [
        "status",
        "stories",
        "candidates",
        "left_out",
        "common_passages",
        "flagged",
        "seconds",
        "warnings",
    ]
    assert facts["stories"] == len(ROWS)
    assert sum(facts["flagged"].values()) == len(before) <= facts["candidates"]
    assert facts["left_out"] == 0
    again = neardup("sweep", "--json").facts
    assert (again["stories"], again["flagged"]) == (len(ROWS), {}), "a second sweep found something new"
    assert flagged(neardup) == before


def test_the_order_of_arrival_changes_nothing(make_neardup: Make, tmp_path: Path, before: Flags) -> None:
    for seed in range(2):
        path = tmp_path / f"{seed}.jsonl"
        rows = random.Random(seed).sample(ROWS, len(ROWS))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        neardup = make_neardup(embedded(manifest=path), str(seed))
        assert neardup("backfill").code == 0
        forget_flags(neardup)
        assert neardup("sweep").code == 0
        assert flagged(neardup) == before


def test_many_stories_of_one_language(make_neardup: Make, tmp_path: Path) -> None:
    generate(tmp_path / "corpus", 1_000)
    neardup = make_neardup(configuration(tmp_path / "corpus"), "many")
    assert neardup("backfill").code == 0
    online = flagged(neardup)
    forget_flags(neardup)
    assert neardup("sweep").code == 0
    assert flagged(neardup) == online


def test_a_stopped_sweep_continues_with_the_other_languages(neardup: Neardup, before: Flags) -> None:
    first = swept_in_part(neardup)
    assert first.status == "stopped"
    assert 0 < first.stories < len(ROWS)
    then = swept(neardup)
    assert then.status == "done"
    assert then.stories == len(ROWS) - first.stories, "completed languages were swept again"
    assert flagged(neardup) == before
    assert swept(neardup).stories == len(ROWS), "a sweep after a completed one did not start over"


@pytest.mark.parametrize("changed", ["thresholds", "stories"])
def test_a_change_meanwhile_restarts_the_sweep(neardup: Neardup, changed: str) -> None:
    assert swept_in_part(neardup).status == "stopped"
    if changed == "stories":
        assert neardup("forget", ROWS[0]["id"]).code == 0
    else:
        neardup.configure(embedded() + "[detection]\njaccard = 0.6\n")
    assert swept(neardup).stories == len(ROWS) - (changed == "stories")


def test_unverified_candidates_are_left_to_the_next_sweep(
    neardup: Neardup, before: Flags, monkeypatch: pytest.MonkeyPatch
) -> None:
    neardup.configure(embedded() + "[run]\nshutdown_seconds = 0.01\n")
    stop = asyncio.Event()

    async def hang(*_: object) -> None:
        stop.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr("neardup.pages.text_cache.Texts.read", hang)
        cut = swept(neardup, stop)
    assert cut.status == "stopped"
    assert neardup("status", "--json").facts["candidates_pending"] > 0
    assert swept(neardup).status == "done"
    assert flagged(neardup) == before


def test_progress_goes_from_nothing_to_all(neardup: Neardup) -> None:
    seen: list[tuple[str, int, int]] = []
    swept(neardup, watch=lambda now: seen.append((now.phase, now.position, now.size)))
    compared = [(position, size) for phase, position, size in seen if phase == "comparing"]
    assert compared == sorted(compared), "the comparison went back after a language was verified"
    assert compared[-1] == (len(ROWS), len(ROWS))


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_stops_a_sweep_and_the_next_continues(neardup: Neardup, before: Flags, number: str) -> None:
    stopped = drive(neardup, number, 0, "sweep", "--json")
    assert stopped.code == {"SIGTERM": 0, "SIGINT": 75}[number], stopped.err
    assert stopped.facts["stories"] < len(ROWS)
    assert "sweep is done" in neardup("sweep").out
    assert flagged(neardup) == before


def test_killed_and_run_again_it_ends_equal(neardup: Neardup, before: Flags) -> None:
    assert drive(neardup, "SIGKILL", 0, "sweep").code == -signal.SIGKILL
    assert neardup("sweep").code == 0
    assert flagged(neardup) == before
    runs = neardup("status", "--json").facts["runs"]
    assert [(run["command"], run["status"]) for run in runs[:2]] == [("sweep", "done"), ("sweep", "crashed")]


def test_a_sweep_needs_no_index(neardup: Neardup, before: Flags) -> None:
    done = neardup("sweep", NEARDUP_INDEX__URL=f"redis://127.0.0.1:{free_port()}")
    assert done.code == 0, done.err
    assert flagged(neardup) == before


def test_the_summary_lists_stories_and_new_flags(neardup: Neardup, before: Flags) -> None:
    neardup.configure(embedded() + '[export]\npath = "flags.csv"\n')
    out = neardup("sweep").out
    assert f"{len(ROWS)} stories" in out
    assert f"New flags ({len(before)})" in out
    assert len((neardup.folder / "flags.csv").read_text(encoding="utf-8").splitlines()) == 1 + len(before)


def test_matches_left_out_are_reported(make_neardup: Make, tmp_path: Path) -> None:
    path = tmp_path / "copies.jsonl"
    copies = [dict(ROWS[0], id=n, path=f"{ROWS[0]['language']}/{ROWS[0]['id']}.html") for n in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in copies), encoding="utf-8")
    neardup = make_neardup(embedded(manifest=path), "copies")
    assert neardup("backfill").code == 0
    neardup.configure(embedded(manifest=path) + "[detection]\nmax_matches = 1\n")
    forget_flags(neardup)
    done = neardup("sweep", "--json")
    # by their whole texts, and then by passages
    assert (done.facts["candidates"], done.facts["left_out"]) == (4 + 4, 2 * (3 + 2 + 1))
    assert done.err.count("max_matches reached") == 2, done.err


def test_no_ledger_yet(make_neardup: Make) -> None:
    assert_one_line(make_neardup(embedded(), "new")("sweep"), 1, "run `neardup backfill` first")


def test_a_ledger_in_use(neardup: Neardup) -> None:
    with lock.only_one(neardup.ledger, "daily"):
        assert_one_line(neardup("sweep"), 75, "neardup daily")


def test_other_fingerprints_are_not_compared(neardup: Neardup) -> None:
    db = sqlite3.connect(neardup.ledger)
    db.execute("UPDATE meta SET value = 'other' WHERE key = 'fingerprint_version'")
    db.commit()
    db.close()
    assert_one_line(neardup("sweep"), 1, "version other", "--refingerprint")
