"""`run` keeps its schedule, reports its state to systemd and Prometheus, and drains on SIGTERM."""

import json
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.support.command import Neardup, embedded
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
