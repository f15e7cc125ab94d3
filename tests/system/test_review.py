"""`neardup review`: what can be wrong with its address, its ledger or its token is one line; it stops when told."""

import re
import signal
import socket
import subprocess

import pytest

from tests.support.command import Neardup, assert_one_line
from tests.support.paths import ROOT

TIMEOUT_SECONDS = 60


def test_what_can_be_wrong_at_the_start(neardup: Neardup) -> None:
    assert_one_line(neardup("review"), 1, "run `neardup backfill` first")
    assert_one_line(neardup("review", "--listen", "nowhere"), 2, "--listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__LISTEN="nowhere"), 2, "review.listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__TOKEN="short"), 2, "review.token: fewer than 16 printable")
    assert_one_line(neardup("review", "--listen", "0.0.0.0:0"), 2, "review.token: 0.0.0.0:0", "NEARDUP_REVIEW__TOKEN")
    assert not neardup.ledger.exists(), "it makes no ledger"
    assert neardup("backfill").code == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert_one_line(neardup("review", "--listen", listen), 1, f"review.listen: cannot listen on {listen}: ")
    broken = neardup("review", NEARDUP_CONTENT__URL="file:/nowhere")
    assert_one_line(broken, 1, "content.url: no folder /nowhere")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_told(neardup: Neardup, number: int) -> None:
    assert neardup("backfill").code == 0
    command = neardup.command("review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=neardup.env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1]))):  # an idle one is no reason to stay
            process.send_signal(number)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert "Traceback" not in process.stderr.read()
