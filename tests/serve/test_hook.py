"""The publish hook of the documentation does what it says."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.languages import HINDI, TAMIL
from tests.support.paths import DEPLOY
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port

Hook = Callable[..., bool]
NEW_ID = 900_000
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
    story = {"id": NEW_ID, "language": "hi", "text": text, "author_id": 17, "title": None}
    published = hook(served)(story, hold=lambda *evidence: held.append(evidence), check_later=later.append)
    assert (published, bool(held), later) == (is_published, is_held, [])


def test_it_publishes_while_the_service_is_down() -> None:
    later = list[Any]()
    story = {"id": NEW_ID, "language": "hi", "text": STORIES[HINDI][0], "author_id": "nobody", "title": "T"}
    assert hook(f"http://127.0.0.1:{free_port()}")(story, hold=pytest.fail, check_later=later.append)
    assert later == [story]
