"""The page to try the API, in a browser: it loads nothing from elsewhere, and sends what it shows."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from neardup.option_values import Right
from neardup.serve.tokens import AuthorTokens, make_author_key, new_token
from playwright.sync_api import expect

from tests.support.command import Neardup, embedded, environment
from tests.support.desk_browser import chromium
from tests.support.languages import HINDI
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port
from tests.support.service import serving


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
