"""Law: a command waits for a process that stores submitted stories, which has the lock for a moment only."""

import threading
from pathlib import Path

import pytest
from neardup.errors import Transient
from neardup.ledger import lock


def test_a_command_waits_for_the_upkeep_of_submissions_and_for_nothing_else(tmp_path: Path) -> None:
    ledger, held, release = tmp_path / "l.db", threading.Event(), threading.Event()

    def hold(command: str) -> None:
        with lock.only_one(ledger, command):
            held.set()
            release.wait()

    keeping_up = threading.Thread(target=hold, args=(lock.SERVE,))
    keeping_up.start()
    held.wait()
    timer = threading.Timer(2 * lock.INSTANT_SECONDS, release.set)
    timer.start()
    with lock.only_one(ledger, "daily"):
        holder = lock.read_holder(ledger)
        assert holder is not None and holder["command"] == "daily"
        with pytest.raises(Transient, match="neardup daily"), lock.only_one(ledger, "sweep"):
            pass
    keeping_up.join()
    timer.join()
