"""A backfill uses constant memory; one that was killed or stopped and run again ends as if undisturbed."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Ended, Neardup, environment
from tests.support.generated_stories import configuration, generate
from tests.support.samples import state

STORIES = 1_000
QUEUE, BATCH, WORKERS = 64, 64, 32
IN_FLIGHT = 2 * QUEUE + WORKERS + 4 * BATCH  # stories that are listed and not on record, at most
RUN = f"\n[run]\nqueue = {QUEUE}\nbatch = {BATCH}\nworkers = {WORKERS}\n"
MANY, MEMORY_FROM = 5_000, 2_000  # where memory is measured
MEMORY_GROWTH_KIB = 30 * 1024
WATCHED = """
import sys
if not any("reader_process" in word for word in sys.orig_argv):
    from tests.support import signalled_command
    signalled_command.watch({name!r}, {at})
"""
Make = Callable[..., Neardup]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generate(folder, STORIES)
    return folder


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """An undisturbed backfill."""
    neardup = Neardup(tmp_path_factory.mktemp("undisturbed"), environment())
    neardup.configure(configuration(corpus) + RUN)
    done = drive(neardup, "NONE", 0, "backfill", "--json")
    assert done.code == 0, done.err
    assert done.facts["flagged"]["exact"], "no planted copy was found"
    return neardup


def drive(neardup: Neardup, signal_name: str, at: int, *arguments: str) -> Ended:
    """Run the command, sending it the signal named `signal_name` once `at` stories are listed; NONE sends none."""
    site = neardup.folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(WATCHED.format(name=signal_name, at=at), encoding="utf-8")
    return neardup(*arguments, PYTHONPATH=str(site))


def test_memory_is_flat(tmp_path: Path, make_neardup: Make) -> None:
    generate(tmp_path, MANY)
    done = drive(make_neardup(configuration(tmp_path)), "NONE", 0, "backfill", "--json")
    assert done.code == 0, done.err
    assert done.facts["fingerprinted"] == MANY
    memory = {int(listed): kib for listed, kib in json.loads(done.err.splitlines()[-1]).items()}
    grown = max(kib for listed, kib in memory.items() if listed >= MEMORY_FROM) - memory[MEMORY_FROM]
    assert grown < MEMORY_GROWTH_KIB, f"grew by {grown} KiB from {MEMORY_FROM} stories on: {memory}"
    kinds = done.facts["flagged"]
    assert kinds["exact"] >= 60, f"too few planted copies were found: {kinds}"


@pytest.mark.parametrize("at", [250, 750])
def test_killed_and_run_again_ends_equal(at: int, corpus: Path, undisturbed: Neardup, make_neardup: Make) -> None:
    neardup = make_neardup(configuration(corpus) + RUN)
    killed = drive(neardup, "SIGKILL", at, "backfill", "--json")
    assert killed.code == -signal.SIGKILL, killed.err
    again = drive(neardup, "NONE", 0, "backfill", "--json")
    assert again.code == 0, again.err
    assert again.facts["listed"] <= STORIES - at + IN_FLIGHT, "the backfill did not continue from its checkpoint"
    assert state(neardup) == state(undisturbed)
    assert state(neardup)["index"], "the index is empty"


@pytest.mark.parametrize("options", [["--fresh"], []], ids=["fresh again", "plain"])
def test_a_fresh_backfill_killed_and_run_again_ends_equal(
    options: list[str], corpus: Path, undisturbed: Neardup, make_neardup: Make
) -> None:
    """Stories written without lookups need a sweep, whichever command finishes the backfill."""
    neardup = make_neardup(configuration(corpus) + RUN)
    assert drive(neardup, "SIGKILL", 500, "backfill", "--fresh").code == -signal.SIGKILL
    assert neardup("status", "--json").facts["sweep_owed"] is True
    again = drive(neardup, "NONE", 0, "backfill", *options, "--json")
    assert again.code == 0, again.err
    assert neardup("status", "--json").facts["sweep_owed"] is False
    assert again.facts["listed"] <= STORIES - 500 + IN_FLIGHT, "the backfill did not continue from its checkpoint"
    actual, expected = state(neardup), state(undisturbed)
    assert len(actual["index"]) > 0, "the index was not built"
    del (
        actual["index"],
        expected["index"],
    )  # the widths of its buckets depend on the sizes of the languages when it was built
    assert actual == expected


def test_killed_with_redis_ends_equal(corpus: Path, undisturbed: Neardup, make_neardup: Make, redis_url: str) -> None:
    neardup = make_neardup(configuration(corpus, redis_url) + RUN)
    assert drive(neardup, "SIGKILL", 500, "backfill").code == -signal.SIGKILL
    assert drive(neardup, "NONE", 0, "backfill").code == 0
    actual, expected = state(neardup), state(undisturbed)
    assert actual == {name: expected[name] for name in actual}
    status = neardup("status", "--json").facts
    assert status["index"]["lag"] == 0
    assert status["index"]["stories"] == STORIES


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_signal_drains_and_a_second_run_continues(
    signal_name: str, corpus: Path, undisturbed: Neardup, make_neardup: Make
) -> None:
    neardup = make_neardup(configuration(corpus) + RUN)
    stopped = drive(neardup, signal_name, 300, "backfill", "--json")
    assert stopped.code == {"SIGTERM": 0, "SIGINT": 75}[signal_name], stopped.err
    facts = stopped.facts
    assert 300 <= facts["listed"] < STORIES
    assert facts["seconds"] < 60
    held = len(state(neardup)["stories"])
    assert held == facts["fingerprinted"], "some fingerprinted stories were not written"
    assert drive(neardup, "NONE", 0, "backfill").code == 0
    assert state(neardup) == state(undisturbed)
