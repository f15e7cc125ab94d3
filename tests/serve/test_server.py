"""`neardup serve` as a process: it says when it is ready, loses nothing it has answered for, and drains on SIGTERM."""

import json
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import neardup as client_library
import pytest

from tests.support.command import Neardup, assert_one_line
from tests.support.faults.bed import configuration, over_s3, served_samples
from tests.support.faults.fault_proxy import Fault
from tests.support.languages import HINDI, TAMIL
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port
from tests.support.service import TIMEOUT_SECONDS, get, serving

NEW_ID = 7


def excerpt(nth: int = 0) -> str:
    words = STORIES[HINDI][nth].split()
    return " ".join(words[: len(words) * 9 // 10])


def test_it_answers_without_the_store_and_drains(make_neardup: Callable[[str], Neardup]) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with served_samples() as proxy, ThreadPoolExecutor(1) as thread:
        neardup = over_s3(make_neardup(configuration(proxy.endpoint)))
        assert neardup("backfill").code == 0
        env = {"NEARDUP_SERVE__DEADLINE_SECONDS": "1", "WATCHDOG_USEC": "10000000"}
        with serving(neardup, listen, **env) as (process, systemd, log):
            systemd.wait_for("READY=1")
            systemd.wait_for("STATUS=serving")
            systemd.wait_for("WATCHDOG=1")
            assert get(listen, "readyz")[0] == 200
            with client_library.Client(f"http://{listen}") as client:
                found = client.check(language="hi", text=excerpt())
                assert (found.verdict, found.estimated) == ("copy", False), found
                proxy.always = lambda _: Fault.SILENT
                proxy.requests.clear()
                waiting = thread.submit(client.check, language="hi", text=excerpt(1))
                while not proxy.requests:
                    pass
                process.send_signal(signal.SIGTERM)
                late = waiting.result(TIMEOUT_SECONDS)
            assert late.estimated
            assert any("could not be read" in reason for reason in late.reasons), late.reasons
            systemd.wait_for("STOPPING=1")
            assert process.wait(TIMEOUT_SECONDS) == 0
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    answered = [line for line in lines if line["event"] == "answered"]
    assert [(line["route"], line["status"]) for line in answered] == [("/v1/check", 200)] * 2
    assert all(line["request"] and line["took_ms"] for line in answered), answered


def test_a_story_that_was_answered_for_survives_a_kill_and_the_daemon_serves_it(neardup: Neardup) -> None:
    listen = f"127.0.0.1:{free_port()}"
    with serving(neardup, listen) as (process, systemd, _):
        systemd.wait_for("STATUS=serving")
        with client_library.Client(f"http://{listen}") as client:
            client.put(NEW_ID, language="ta", text=STORIES[TAMIL][0], title="புதிய")
        process.kill()
    with serving(neardup, listen, "run") as (process, systemd, _):
        systemd.wait_for("STATUS=next run at")
        with client_library.Client(f"http://{listen}") as client:
            assert client.story(NEW_ID).title == "புதிய"
            matches = client.matches(NEW_ID).matches
            assert "similar" in {match.kind for match in matches}, "the daily run did not compare it with its original"
            process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0


def test_errors_at_the_start(neardup: Neardup, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    assert_one_line(neardup("serve", "--listen", "nowhere"), 2, "--listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("serve", "--listen", "0.0.0.0:0"), 2, "serve.tokens: 0.0.0.0:0", "--new-token NAME")
    assert_one_line(neardup("serve", NEARDUP_SERVE__TOKENS=str(tokens)), 2, f"cannot read {tokens}")
    assert_one_line(neardup("serve", "--new-token", "app"), 2, "name the file of the tokens first, as serve.tokens")
    assert_one_line(neardup("serve", "--rights", "check"), 2, "--rights: only --new-token takes it")
    wrong = neardup("serve", "--new-token", "app", "--rights", "read", NEARDUP_SERVE__TOKENS=str(tokens))
    assert_one_line(wrong, 2, "a right is one of check, store, forget")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert_one_line(neardup("serve", "--listen", listen), 1, f"serve.listen: cannot listen on {listen}: ")
    broken = neardup("serve", "--listen", "127.0.0.1:0", NEARDUP_CONTENT__URL="file:/nowhere")
    assert broken.code == 1
    assert broken.err.splitlines()[-1] == "neardup: content.url: no folder /nowhere"


def test_a_new_token_is_printed_once_and_opens_the_service(neardup: Neardup, tmp_path: Path) -> None:
    env = {"NEARDUP_SERVE__TOKENS": str(tmp_path / "tokens.toml")}
    secrets = {
        name: neardup("serve", "--new-token", name, "--rights", rights, config=None, **env).out.strip()
        for name, rights in (("app", "check, store"), ("desk", "check"))
    }
    listen = f"127.0.0.1:{free_port()}"
    with serving(neardup, listen, **env) as (process, systemd, log):
        systemd.wait_for("STATUS=serving")
        with client_library.Client(f"http://{listen}", secrets["app"]) as client:
            client.put(NEW_ID, language="hi", text=excerpt())
        with client_library.Client(f"http://{listen}", secrets["desk"]) as client:
            assert client.story(NEW_ID).language == HINDI
            with pytest.raises(client_library.ServiceError, match="does not have the right store"):
                client.put(NEW_ID, language="hi", text=excerpt())
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == 0
        lines = log.read_text(encoding="utf-8")
    assert '"token": "desk"' in lines
    assert secrets["app"] not in lines
