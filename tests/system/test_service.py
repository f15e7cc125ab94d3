"""`run` keeps its schedule, reports its state to systemd and Prometheus, and drains on SIGTERM; any run says of itself
when it starts, its phases, and a time that leaves nothing out.
"""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from neardup import __version__
from neardup.cli import console
from neardup.cli.maintain import print_checks
from neardup.config import Config, Content, Source
from neardup.ops import doctor
from neardup.ops.doctor import CheckResult, Level
from neardup.telemetry import log as log_module

from tests.support.command import Ended, Neardup, embedded
from tests.support.servers import free_port, redis_server
from tests.support.service import TIMEOUT_SECONDS, get, running

Make = Callable[..., Neardup]


def test_a_daemon_runs_reports_and_drains(neardup: Neardup) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with running(neardup, listen) as (process, systemd):
        systemd.wait_for("READY=1")
        systemd.wait_for("STATUS=next run at")
        systemd.wait_for("WATCHDOG=1")
        status, body = get(listen, "healthz")
        assert (status, json.loads(body)["healthy"]) == (200, True)
        _, metrics = get(listen, "metrics")
        for line in (
            'neardup_flags_total{kind="exact",language="TAMIL"} 1.0',
            'neardup_stories_total{language="HINDI",outcome="fingerprinted",reason=""} 7.0',
            'neardup_index_stories{language="ODIA"} 6.0',
            "neardup_index_lag 0.0",
            'neardup_last_success_timestamp_seconds{command="daily"}',
            'neardup_stage_seconds_count{stage="extract"} 61.0',
        ):
            assert line in metrics, line
        second = neardup("daily")
        assert second.code == 0, "another command failed between two runs"
        daemon = neardup("status", "--json").facts["daemon"]
        assert daemon["pid"] == process.pid
        assert datetime.fromisoformat(daemon["next_run"]) > datetime.now(UTC), "a run has just succeeded"
        process.send_signal(signal.SIGTERM)
        systemd.wait_for("STOPPING=1")
        assert process.wait(TIMEOUT_SECONDS) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert any("daily run" in line for line in systemd.lines), systemd.lines


def test_it_waits_for_redis_and_resumes_by_itself(make_neardup: Make, tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    folder.mkdir()
    neardup = make_neardup(embedded(index=f"unix://{folder}/redis.sock"))
    listen = f"127.0.0.1:{free_port()}"
    with running(neardup, listen) as (process, systemd):
        systemd.wait_for("STATUS=waiting: Redis does not answer")
        assert get(listen, "healthz")[0] == 503
        with redis_server(folder):
            systemd.wait_for("STATUS=next run at")
            assert get(listen, "healthz")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_SECONDS) == 0


def test_a_failed_run_is_reported_and_retried(make_neardup: Make) -> None:
    neardup = make_neardup(embedded())
    listen = f"127.0.0.1:{free_port()}"
    with running(neardup, listen, NEARDUP_SOURCE__MANIFEST="/nowhere.csv") as (process, systemd):
        systemd.wait_for("STATUS=next run at")
        status, body = get(listen, "healthz")
        assert (status, "nowhere.csv" in json.loads(body)["last_failure"]) == (503, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0


def test_an_address_in_use_is_one_clear_line(neardup: Neardup) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = neardup("run", NEARDUP_METRICS__LISTEN=listen)
        assert ended.code == 1
        assert ended.err.strip().splitlines()[-1].startswith(f"neardup: metrics.listen: cannot listen on {listen}")
        assert neardup("backfill", NEARDUP_METRICS__LISTEN=listen).code == 0, (
            "a one-shot run failed without its metrics address"
        )


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def events(ended: Ended) -> list[dict[str, object]]:
    return [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]


def on_a_terminal(command: Neardup, *arguments: str, **env: str) -> str:
    """Run the command with a terminal as its stderr; returns what it wrote there."""
    owner, terminal = pty.openpty()
    with subprocess.Popen(
        command.command(*arguments),
        cwd=command.folder,
        env={key: value for key, value in command.env.items() if key not in ("NO_COLOR", "TERM")}
        | {"TERM": "xterm-256color", "COLUMNS": "200"}
        | env,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        written = bytearray()
        while chunk := _read(owner):
            written += chunk
        assert process.wait() == 0, written.decode()
    os.close(owner)
    return written.decode()


def _read(owner: int) -> bytes:
    try:
        return os.read(owner, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_run_logs_its_start(neardup: Neardup) -> None:
    held = 0
    for command in ("backfill", "daily", "sweep"):
        ended = neardup(command)
        [line] = [event for event in events(ended) if event["event"] == "run started"]
        assert (ended.code, line["command"], line["version"], line["stories"]) == (0, command, __version__, held)
        held = sum(neardup("status", "--json").facts["stories"].values())
        assert held


def test_the_time_of_a_fresh_backfill_includes_its_sweep(neardup: Neardup) -> None:
    seconds = neardup("backfill", "--fresh", "--json").facts["seconds"]
    sweep, backfill = neardup("status", "--json").facts["runs"]
    began, ended = (datetime.fromisoformat(backfill[key]).timestamp() for key in ("started_at", "ended_at"))
    assert sweep["command"] == "sweep"
    assert seconds >= sweep["counts"]["seconds"] + 0.8 * (ended - began)


def test_a_silent_command_says_on_a_terminal_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, terminal = pty.openpty()
    with open(terminal, "w", encoding="utf-8") as stderr:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setattr(console, "SILENT_SECONDS", 0.0)
        with console.show_waiting("audit"):
            shown = ""
            while "audit: working" not in shown:
                shown += COLOUR.sub("", _read(owner).decode())
    os.close(owner)


def test_a_short_command_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, terminal = pty.openpty()
    with open(terminal, "w", encoding="utf-8") as stderr:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stderr", stderr)
        with console.show_waiting("audit"):
            pass
    assert _read(owner) == b""
    os.close(owner)


def test_a_silent_command_has_lines_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log_module, "LOG_EVERY_SECONDS", 0.01)
    shown = ""
    with console.show_waiting("audit"):
        while "working" not in shown:
            shown += capsys.readouterr().out
    assert "progress" in shown and "audit" in shown


def test_doctor_shows_that_it_works_before_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []

    @contextmanager
    def waiting(command: str) -> Iterator[None]:
        waits.append(command)
        yield

    async def examine(_: Config) -> AsyncIterator[CheckResult]:
        for part in ("ledger", "index"):
            yield CheckResult(part, Level.OK, "")

    monkeypatch.setattr(console, "show_waiting", waiting)
    monkeypatch.setattr(doctor, "examine", examine)
    print_checks(Config(source=Source(manifest=Path("none.csv")), content=Content(url="file:/none")))
    assert waits == 3 * ["doctor"], "one for each part, and one to the end"


def test_the_bar_names_the_phases_of_a_run(neardup: Neardup) -> None:
    shown = COLOUR.sub("", on_a_terminal(neardup, "backfill"))
    assert "backfill: reading" in shown
    assert "backfill: verifying" in shown


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_no_color_holds_for_log_lines(neardup: Neardup, env: dict[str, str], coloured: bool) -> None:
    shown = on_a_terminal(neardup, "backfill", **env)
    [line] = [line for line in shown.splitlines() if "run started" in line]
    assert bool(COLOUR.search(line)) == coloured, repr(line)
