"""A daemon killed while its reader processes start blames no story."""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neardup.pipeline.quarantine import InFlight

from tests.support.command import Neardup, embedded
from tests.support.faults.bed import PATHS, Bed, listed_letters
from tests.support.faults.command_driver import kill_with_readers
from tests.support.faults.fault_table import AssertSameState, find_crashed
from tests.support.sampling import CHAOS

SEED = 15
KILLS = 6 * CHAOS if CHAOS > 1 else 3
SPAN_SECONDS = 3.0  # from the start of a command on: reader processes start within it


def kill_times(rng: random.Random) -> list[float]:
    """One random time in each of KILLS equal parts of the span, the first in the first millisecond."""
    return [0.001 * rng.random(), *(SPAN_SECONDS * (n + rng.random()) / KILLS for n in range(1, KILLS))]


@contextmanager
def backfilling(neardup: Neardup) -> Iterator[subprocess.Popen[bytes]]:
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
        with backfilling(neardup) as process, suppress(subprocess.TimeoutExpired):
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
