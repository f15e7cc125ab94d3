"""A disk that fails or becomes read-only: one line that names the file, and the next run ends as if undisturbed.

CHAOS=N lets N times as many calls fail.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Neardup, embedded
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.samples import state
from tests.support.sampling import CHAOS

SOURCE = Path(__file__).parents[1] / "support" / "faults" / "failing_disk.c"
LEDGER, LOG, PASSAGES = "neardup.db", "neardup.db-wal", "neardup.db.passages"
# The call that fails, the name of the file, and from which call on
FAILURES = [
    ("write", PASSAGES, 1),
    ("remount", LEDGER, 60),
    ("sync", LOG, 9),
    ("write", LOG, 1),
    ("write", LOG, 60),
    ("write", LOG, 200),
    ("read", LOG, 20),
    ("sync", PASSAGES, 1),
    ("sync", LOG, 3),
    ("sync", LOG, 14),
    ("remount", LEDGER, 1),
    ("remount", LEDGER, 20),
    ("remount", LEDGER, 250),
    ("remount", PASSAGES, 1),
]
CHOSEN = FAILURES[: 2 * CHAOS]


@pytest.fixture(scope="module")
def failing_disk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, by which the calls of a process fail."""
    library = tmp_path_factory.mktemp("library") / "failing_disk.so"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, SOURCE, "-ldl"], check=True)
    return str(library)


@pytest.mark.parametrize(("call", "name", "first"), CHOSEN)
def test_a_failing_disk_is_one_line_and_loses_nothing(  # noqa: PLR0917 - each is a part of its own
    make_neardup: Callable[[str], Neardup],
    failing_disk: str,
    record_row: Callable[[Row], None],
    call: str,
    name: str,
    first: int,
) -> None:
    neardup = make_neardup(embedded())
    env = {"FAILING_CALL": call, "FAILING_PATH": name, "FAILING_FROM": str(first)}
    failed = subprocess.run(
        neardup.command("backfill", "--json"),
        env=os.environ | neardup.env | env | {"LD_PRELOAD": failing_disk},
        cwd=neardup.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = failed.stderr.splitlines()[-1]
    assert (failed.returncode, failed.stdout) == (1, ""), failed.stderr
    assert said.startswith("neardup: ") and LEDGER in said, f"the line names no file: {said}"
    assert "Traceback" not in failed.stderr
    whole = neardup("backfill", "--json")
    assert whole.code == 0 and whole.facts["dead_lettered"] == {}
    lost, error = 61 - len(state(neardup)["stories"]), "EROFS" if call == "remount" else "EIO"
    record_row(make_row(f"disk: {call} fails, {error}", 1, find_said(LEDGER, said), in_flight=61, lost=lost))
    assert len(state(neardup)["stories"]) == 61, "stories are lost"
