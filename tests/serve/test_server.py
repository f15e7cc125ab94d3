"""`neardup serve` as a process: it says when it is ready, loses nothing it has answered for, and drains on SIGTERM.

The page to try the API, in a browser: it loads nothing from elsewhere, and sends what it shows.  The publish hook of
the documentation does what it says.
"""

import json
import re
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import neardup as client_library
import pytest
from neardup.option_values import Right
from neardup.serve.tokens import AuthorTokens, make_author_key, new_token
from playwright.sync_api import expect

from tests.support.command import Neardup, assert_one_line, embedded, environment
from tests.support.desk_browser import chromium
from tests.support.faults.bed import configuration, over_s3, served_samples
from tests.support.faults.fault_proxy import Fault
from tests.support.languages import HINDI, TAMIL
from tests.support.paths import DEPLOY
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


def test_a_story_can_be_checked_on_the_page(served: str) -> None:
    asked, problems = list[str](), list[str]()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 360, "height": 760})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(served)
        page.get_by_text("Is this story a copy").wait_for()
        body = json.loads(page.get_by_label("Body").input_value())
        assert set(body) == {"language", "text"}, "the example does not fit the schema"
        page.get_by_label("Body").fill(json.dumps({"language": "hi", "text": STORIES[HINDI][0]}, ensure_ascii=False))
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200, request").wait_for()
        assert json.loads(page.locator("#answer").inner_text())["verdict"] == "copy"
        page.get_by_label("Operation").select_option(label="GET /v1/stories/{id}: Show a story on record")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("404, request").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert all(url.startswith(served) for url in asked), f"loaded from elsewhere: {asked}"
    assert [line for line in problems if "status of 404" not in line] == []


def test_an_author_reads_the_copies_of_the_own_stories_with_a_token_that_is_not_expired_or_forged(
    tmp_path: Path,
) -> None:
    neardup = Neardup(tmp_path, environment())
    neardup.configure(embedded())
    assert neardup("backfill").code == 0
    tokens, key, listen = tmp_path / "tokens.toml", tmp_path / "author.key", f"127.0.0.1:{free_port()}"
    make_author_key(key)
    platform, author = new_token(tokens, "app", frozenset(Right)), AuthorTokens.open(key, timedelta(hours=1))
    valid = author.make("7001", 0).token
    with patch("itsdangerous.timed.time.time", return_value=1_700_000_000):
        expired = author.make("7001", 0).token
    env = {"NEARDUP_SERVE__TOKENS": str(tokens), "NEARDUP_SERVE__AUTHOR_KEY": str(key)}
    with serving(neardup, listen, **env) as (_, systemd, _), chromium() as browser:
        systemd.wait_for("STATUS=serving")
        page = browser.new_page(viewport={"width": 360, "height": 760})
        page.goto(f"http://{listen}")
        page.get_by_label("Operation").select_option(
            label="GET /v1/authors/{author}/copies: List the stories by others that hold text of an author's stories, "
            "the latest flag first"
        )

        def ask(token: str, listed: str, query: str = "") -> dict[str, Any]:
            for field, value in (("#token", token), ("#id", listed), ("#query", query)):
                page.locator(field).fill(value)
            with page.expect_response(lambda response: "/copies" in response.url):
                page.get_by_role("button", name="Send").click()
            expect(page.locator("#status")).to_contain_text("request ")
            answer: dict[str, Any] = json.loads(page.locator("#answer").inner_text())
            return answer

        [copy] = ask(valid, "7001")["copies"]
        assert (copy["own_story_id"], copy["story_id"], copy["kind"]) == (4100000, 4100006, "exact")
        assert ask(valid, "7001", "since=2999-01-01T00:00:00Z")["copies"] == []
        for token, listed, refusal in (
            (expired, "7001", "expired-token"),
            (f"{valid}x", "7001", "unauthenticated"),
            (valid, "7002", "other-authors-token"),
            (valid, "..", "other-authors-token"),
        ):
            assert ask(token, listed)["type"].rpartition(":")[2] == refusal
        assert ask(platform, "..")["copies"] == [], "the id .. is no step between folders"


Hook = Callable[..., bool]
FIRST_ID = 900_000
SHORT = "दो शब्द"


def hook(url: str) -> Hook:
    """The hook, with another address."""
    text = (DEPLOY / "docs" / "serve.md").read_text(encoding="utf-8").partition("## A publish hook")[2]
    [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block.replace("http://127.0.0.1:8766", url), names)
    made: Hook = names["on_publish"]
    return made


@pytest.mark.parametrize(
    ("text", "is_published", "is_held"),
    [(STORIES[HINDI][0], False, True), (" ".join(STORIES[TAMIL][0].split()[::-1]), True, False), (SHORT, True, False)],
    ids=["copy", "new", "short"],
)
def test_it_holds_copies_back_and_publishes_the_rest(served: str, text: str, is_published: bool, is_held: bool) -> None:
    held, later = list[Any](), list[Any]()
    story = {"id": FIRST_ID, "language": "hi", "text": text, "author_id": 17, "title": None}
    published = hook(served)(story, hold=lambda *evidence: held.append(evidence), check_later=later.append)
    assert (published, bool(held), later) == (is_published, is_held, [])


def test_it_publishes_while_the_service_is_down() -> None:
    later = list[Any]()
    story = {"id": FIRST_ID, "language": "hi", "text": STORIES[HINDI][0], "author_id": "nobody", "title": "T"}
    assert hook(f"http://127.0.0.1:{free_port()}")(story, hold=pytest.fail, check_later=later.append)
    assert later == [story]
