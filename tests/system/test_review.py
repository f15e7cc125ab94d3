"""`neardup review`: a wrong address, ledger or token is one error line; a signal stops it."""

import re
import signal
import socket
import subprocess
import tomllib

import pytest

from tests.support.command import Ended, Neardup, assert_one_line
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


def test_tokens_of_moderators(neardup: Neardup) -> None:
    file = neardup.folder / "moderators.toml"
    assert_one_line(neardup("review", "--new-token", "Asha"), 2, "--new-token: name the file of the moderators first")
    assert_one_line(neardup("review", "--rights", "read"), 2, "--rights, --languages: only --new-token takes them")

    def review(*arguments: str) -> Ended:
        return neardup("review", *arguments, NEARDUP_REVIEW__MODERATORS=str(file))

    assert_one_line(review(), 2, f"review.moderators: cannot read {file}")
    token = review("--new-token", "आशा", "--rights", "read", "--languages", "hi,MARATHI").out.strip()
    assert token and token not in file.read_text(encoding="utf-8")
    assert tomllib.loads(file.read_text(encoding="utf-8"))["आशा"]["languages"] == ["HINDI", "MARATHI"]
    assert_one_line(review("--new-token", "आशा"), 2, "has a token")
    assert_one_line(review("--new-token", "x", "--rights", "all"), 2, "a right is one of read, decide")
    assert_one_line(review("--new-token", "x", "--languages", "zz"), 2, "unknown language 'zz'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("flagged")
def test_a_signal_stops_it(neardup: Neardup, number: int) -> None:
    command = neardup.command("review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=neardup.env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1]))):  # an idle connection must not delay the stop
            process.send_signal(number)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert "Traceback" not in process.stderr.read()
