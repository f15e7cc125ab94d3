"""A backfill holds flat memory, and one that was killed or stopped ends, run again, as if it never had been."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Ended, Neardup
from tests.support.generated_stories import configuration, generate
from tests.support.ledger_state import state
from tests.support.paths import ROOT

STORIES = 20_000
MEMORY_FROM = 5_000
MEMORY_GROWTH_KIB = 30 * 1024
Make = Callable[..., Neardup]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generate(folder, STORIES)
    return folder


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Neardup, Ended]:
    """The backfill that nothing happened to."""
    neardup = Neardup(tmp_path_factory.mktemp("undisturbed"), {})
    neardup.configure(configuration(corpus))
    return neardup, drive(neardup, "NONE", 0, "backfill", "--json")


def drive(neardup: Neardup, number: str, at: int, *arguments: str) -> Ended:
    command = [
        sys.executable,
        "-m",
        "tests.support.signalled_command",
        number,
        str(at),
        "--config",
        str(neardup.folder / "config.toml"),
    ]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def test_memory_is_flat(undisturbed: tuple[Neardup, Ended]) -> None:
    _, done = undisturbed
    assert done.code == 0, done.err
    assert done.facts["fingerprinted"] == STORIES
    memory = {int(listed): kib for listed, kib in json.loads(done.err.splitlines()[-1]).items()}
    grown = max(kib for listed, kib in memory.items() if listed >= MEMORY_FROM) - memory[MEMORY_FROM]
    assert grown < MEMORY_GROWTH_KIB, f"grew by {grown} KiB from {MEMORY_FROM} stories on: {memory}"
    kinds = done.facts["flagged"]
    assert kinds["exact"] >= 300, f"the planted copies are found: {kinds}"


@pytest.mark.parametrize("at", [2_000, 10_000])
def test_killed_and_run_again_ends_equal(
    at: int, corpus: Path, undisturbed: tuple[Neardup, Ended], make_neardup: Make
) -> None:
    neardup = make_neardup(configuration(corpus))
    killed = drive(neardup, "SIGKILL", at, "backfill", "--json")
    assert killed.code == -signal.SIGKILL, killed.err
    again = drive(neardup, "NONE", 0, "backfill", "--json")
    assert again.code == 0, again.err
    assert again.facts["listed"] <= STORIES - at + 2 * 256 + 32 + 256, "it goes on where it was"
    assert state(neardup) == state(undisturbed[0])
    assert state(neardup)["index"], "an index that is empty is equal to any"


@pytest.mark.parametrize("options", [["--fresh"], []], ids=["fresh again", "plain"])
def test_a_fresh_backfill_killed_and_run_again_ends_equal(
    options: list[str], corpus: Path, undisturbed: tuple[Neardup, Ended], make_neardup: Make
) -> None:
    """Once stories were written without lookups, a sweep is owed, whatever finishes the backfill."""
    neardup = make_neardup(configuration(corpus))
    assert drive(neardup, "SIGKILL", 7_000, "backfill", "--fresh").code == -signal.SIGKILL
    assert neardup("status", "--json").facts["sweep_owed"] is True
    again = drive(neardup, "NONE", 0, "backfill", *options, "--json")
    assert again.code == 0, again.err
    assert neardup("status", "--json").facts["sweep_owed"] is False
    assert again.facts["listed"] <= STORIES - 7_000 + 2 * 256 + 32 + 256, "it goes on where it was"
    mine, theirs = state(neardup), state(undisturbed[0])
    assert len(mine["index"]) > 0, "the index is built"
    del mine["index"], theirs["index"]  # their buckets are as wide as their languages were large when they began
    assert mine == theirs


def test_killed_with_redis_ends_equal(
    corpus: Path, undisturbed: tuple[Neardup, Ended], make_neardup: Make, redis_url: str
) -> None:
    neardup = make_neardup(configuration(corpus, redis_url))
    assert drive(neardup, "SIGKILL", 7_000, "backfill").code == -signal.SIGKILL
    assert drive(neardup, "NONE", 0, "backfill").code == 0
    mine, theirs = state(neardup), state(undisturbed[0])
    assert mine == {name: theirs[name] for name in mine}
    status = neardup("status", "--json").facts
    assert status["index"]["lag"] == 0
    assert status["index"]["stories"] == STORIES


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_drains_and_a_second_run_goes_on(
    number: str, corpus: Path, undisturbed: tuple[Neardup, Ended], make_neardup: Make
) -> None:
    neardup = make_neardup(configuration(corpus))
    stopped = drive(neardup, number, 3_000, "backfill", "--json")
    assert stopped.code == 0, stopped.err
    facts = stopped.facts
    assert 3_000 <= facts["listed"] < STORIES
    assert facts["seconds"] < 60
    held = len(state(neardup)["stories"])
    assert held == facts["fingerprinted"], "what was accepted is written"
    assert drive(neardup, "NONE", 0, "backfill").code == 0
    assert state(neardup) == state(undisturbed[0])
