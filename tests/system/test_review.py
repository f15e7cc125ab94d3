"""`neardup review`: a wrong address, ledger or token is one error line; a signal stops it."""

import re
import signal
import socket
import subprocess

import pytest

from tests.support.command import Neardup, assert_one_line
from tests.support.paths import ROOT

TIMEOUT_SECONDS = 60


def test_errors_at_the_start(neardup: Neardup) -> None:
    assert_one_line(neardup("review"), 1, "run `neardup backfill` first")
    assert_one_line(neardup("review", "--listen", "nowhere"), 2, "--listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__LISTEN="nowhere"), 2, "review.listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__TOKEN="short"), 2, "review.token: fewer than 16 printable")
    assert_one_line(neardup("review", "--listen", "0.0.0.0:0"), 2, "review.token: 0.0.0.0:0", "NEARDUP_REVIEW__TOKEN")
    assert not neardup.ledger.exists(), "review created a ledger"
    assert neardup("backfill").code == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert_one_line(neardup("review", "--listen", listen), 1, f"review.listen: cannot listen on {listen}: ")
    broken = neardup("review", NEARDUP_CONTENT__URL="file:/nowhere")
    assert_one_line(broken, 1, "content.url: no folder /nowhere")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it(neardup: Neardup, number: int) -> None:
    assert neardup("backfill").code == 0
    command = neardup.command("review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=neardup.env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1]))):  # an idle connection must not delay the stop
            process.send_signal(number)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert "Traceback" not in process.stderr.read()
