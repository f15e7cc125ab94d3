"""Laws of failing stores: a transient error is retried and counted; any other ends at once with its own reason.

The store is a real HTTP server that sends chosen statuses.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
import stamina
from aiohttp import web
from msgspec import Struct, field
from neardup.config import Content
from neardup.records import Dead, DeadLettered, Fingerprinted, Outcome, Skip, Skipped, Story
from neardup.retry import ATTEMPTS
from prometheus_client import REGISTRY

from tests.support.builders import worker_of
from tests.support.languages import HINDI
from tests.support.servers import REGION, free_port

STORY = Story(1, HINDI, "page.html")
PAGE = "<p>राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और लिखता था।</p>"


class FaultyStore(Struct):
    """An object store that answers the next requests with `statuses`, and further ones with a page."""

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
def _no_back_off() -> Iterator[None]:
    """The usual number of attempts, without the back-off between them."""
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch, _no_back_off: None) -> AsyncIterator[FaultyStore]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    store = FaultyStore(free_port())
    app = web.Application()
    app.add_routes([web.get("/{path:.*}", store.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", store.port).start()
    yield store
    await runner.cleanup()


async def outcome(store: FaultyStore, *statuses: int) -> Outcome:
    store.statuses = list(statuses)
    content = Content(url="s3://b", endpoint=f"http://127.0.0.1:{store.port}", region=REGION, path_style=True)
    return await worker_of(content).outcome(STORY)


def retries(reason: str) -> float:
    return REGISTRY.get_sample_value("neardup_retries_total", {"stage": "fetch", "reason": reason}) or 0.0


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "store_error"), (502, "store_error"), (503, "slow_down"), (429, "slow_down")]
)
async def test_a_transient_error_is_retried(store: FaultyStore, status: int, reason: str) -> None:
    before = retries(reason)
    assert isinstance(await outcome(store, status, status), Fingerprinted)
    assert store.asked == 3
    assert retries(reason) == before + 2


async def test_a_lasting_error_is_dead_lettered_with_its_message(store: FaultyStore) -> None:
    before = retries("slow_down")
    result = await outcome(store, *[503] * 100)
    assert isinstance(result, DeadLettered)
    assert result.reason == Dead.STORE_ERROR
    assert "503" in result.error
    assert store.asked == ATTEMPTS, "only one layer may retry"
    assert retries("slow_down") == before + ATTEMPTS - 1, "the last attempt is not followed by a retry"


async def test_a_refusal_is_not_retried(store: FaultyStore) -> None:
    result = await outcome(store, 403)
    assert isinstance(result, DeadLettered) and result.reason == Dead.FORBIDDEN
    assert store.asked == 1


async def test_a_missing_page_is_skipped(store: FaultyStore) -> None:
    assert await outcome(store, 404) == Skipped(STORY, Skip.MISSING)
    assert store.asked == 1


@pytest.mark.usefixtures("_no_back_off")
async def test_an_unreachable_store_means_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    result = await outcome(FaultyStore(free_port()))
    assert isinstance(result, DeadLettered) and result.reason == Dead.STORE_ERROR
