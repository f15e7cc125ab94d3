"""The page to try the API, in a browser: it loads nothing from elsewhere, and sends what it shows."""

import json

from tests.support.desk_browser import chromium
from tests.support.languages import HINDI
from tests.support.sample_texts import STORIES


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
