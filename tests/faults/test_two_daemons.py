"""A ledger has one daemon: a second one refuses to start and names the first, and can start once that has died."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from neardup.errors import Fatal
from neardup.ledger import lock

from tests.support.command import Neardup, assert_one_line
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.servers import free_port
from tests.support.service import running


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
    full = Path("/dev/full")
    monkeypatch.setattr(lock, "_make_path", lambda ledger, suffix: full)
    with pytest.raises(Fatal, match="cannot lock the ledger: /dev/full: "), lock.only_one(tmp_path / "l.db", "daily"):
        pass
