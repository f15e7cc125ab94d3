"""What is transient is tried again and counted, what is not ends at once under its own name.

Against a real HTTP server that fails as it is told to.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest
import stamina
from aiohttp import web
from neardup.config import Content
from neardup.records import Dead, DeadLettered, Fingerprinted, Outcome, Skip, Skipped, Story
from neardup.retry import ATTEMPTS
from prometheus_client import REGISTRY

from tests.support.builders import worker_of
from tests.support.languages import HINDI
from tests.support.servers import REGION, free_port

STORY = Story(1, HINDI, "page.html")
PAGE = "<p>राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और लिखता था।</p>"


@dataclass
class Faulty:
    """An object store whose next answers are statuses of our choosing."""

    port: int
    statuses: list[int] = field(default_factory=list)
    asked: int = 0

    async def answer(self, _: web.Request) -> web.StreamResponse:
        self.asked += 1
        status = self.statuses.pop(0) if self.statuses else 200
        code = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown"}.get(status, "InternalError")
        if status == 200:
            headers = {"ETag": '"e"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            return web.Response(body=PAGE.encode(), headers=headers)
        return web.Response(status=status, text=f"<Error><Code>{code}</Code><Message>m</Message></Error>")


@pytest.fixture
def _at_once() -> Iterator[None]:
    """Attempts as many as ever, but without the pauses between them."""
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch, _at_once: None) -> AsyncIterator[Faulty]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    made = Faulty(free_port())
    app = web.Application()
    app.add_routes([web.get("/{path:.*}", made.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", made.port).start()
    yield made
    await runner.cleanup()


async def outcome(store: Faulty, *statuses: int) -> Outcome:
    store.statuses = list(statuses)
    content = Content(url="s3://b", endpoint=f"http://127.0.0.1:{store.port}", region=REGION, path_style=True)
    return (await worker_of(content).process(STORY))[1]


def retries(reason: str) -> float:
    return REGISTRY.get_sample_value("neardup_retries_total", {"stage": "fetch", "reason": reason}) or 0.0


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "store_error"), (502, "store_error"), (503, "slow_down"), (429, "slow_down")]
)
async def test_what_passes_is_tried_again(store: Faulty, status: int, reason: str) -> None:
    before = retries(reason)
    assert isinstance(await outcome(store, status, status), Fingerprinted)
    assert store.asked == 3
    assert retries(reason) == before + 2


async def test_what_does_not_pass_is_dead_lettered_with_the_stores_words(store: Faulty) -> None:
    before = retries("slow_down")
    made = await outcome(store, *[503] * 100)
    assert isinstance(made, DeadLettered)
    assert made.reason == Dead.STORE_ERROR
    assert "503" in made.error
    assert store.asked == ATTEMPTS, "one retry layer, and it is ours"
    assert retries("slow_down") == before + ATTEMPTS - 1, "the attempt that gave up is not tried again"


async def test_a_refusal_is_not_tried_again(store: Faulty) -> None:
    made = await outcome(store, 403)
    assert isinstance(made, DeadLettered) and made.reason == Dead.FORBIDDEN
    assert store.asked == 1


async def test_a_missing_page_is_no_error(store: Faulty) -> None:
    assert await outcome(store, 404) == Skipped(STORY, Skip.MISSING)
    assert store.asked == 1


@pytest.mark.usefixtures("_at_once")
async def test_a_store_that_is_away_is_dead_lettered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    made = await outcome(Faulty(free_port()))
    assert isinstance(made, DeadLettered) and made.reason == Dead.STORE_ERROR
