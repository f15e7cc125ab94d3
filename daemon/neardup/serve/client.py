"""Clients of the HTTP service: `neardup.Client`, and `neardup.AsyncClient` for programs with an event loop.

    with neardup.Client("http://127.0.0.1:8766", token=TOKEN) as client:
        answer = client.check(language="hi", text=draft)

Both send a call again while the service is busy or cannot be reached, up to `attempts` times, and wait as long as it
asks.  Every call may be repeated without harm.  They raise ServiceError, and ValueError for a request that does not fit
the schema.
"""

from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

import aiohttp
import stamina
import urllib3

from neardup.serve import calls
from neardup.serve.answers import (
    CheckAnswer,
    CompareAnswer,
    Forgotten,
    MatchesAnswer,
    Problem,
    Stored,
)
from neardup.serve.calls import A, Call, ServiceError, Side, Story, is_worth_retrying

TIMEOUT_SECONDS = 10.0
ATTEMPTS = 4
MOST_WAIT_SECONDS = 2.0


def _headers(token: str | None) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "neardup"}
    return headers if token is None else headers | {"Authorization": f"Bearer {token}"}


class Client:
    """Calls the service at `url`, such as "http://127.0.0.1:8766"; safe for use by several threads."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = TIMEOUT_SECONDS, attempts: int = ATTEMPTS
    ) -> None:
        self._url = url.rstrip("/")
        self._pool = urllib3.PoolManager(headers=_headers(token), timeout=timeout, retries=False)
        self._attempts = attempts

    def check(self, *, story_id: int | str | None = None, **story: Unpack[Story]) -> CheckAnswer:
        """Check a story; nothing is stored."""
        return self._send(calls.check(story_id, story))

    def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        return self._send(calls.check_batch(stories)).results

    def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        return self._send(calls.put(story_id, path, story, restore=restore))

    def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return self._send(calls.story(story_id))

    def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return self._send(calls.matches(story_id))

    def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return self._send(calls.compare(a, b))

    def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return self._send(calls.forget(story_id))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, call: Call[A]) -> A:
        for attempt in stamina.retry_context(is_worth_retrying, attempts=self._attempts, wait_max=MOST_WAIT_SECONDS):
            with attempt:
                try:
                    response = self._pool.request(call.method, self._url + call.path, body=call.body)
                except urllib3.exceptions.HTTPError as error:
                    raise ServiceError(f"{self._url} does not answer: {type(error).__name__}") from error
                return call.result(response.status, response.data, response.headers.get("Retry-After"))
        raise AssertionError("unreachable: the last attempt returns or raises")


class AsyncClient:
    """As `Client`, for one event loop; use it in `async with`."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = TIMEOUT_SECONDS, attempts: int = ATTEMPTS
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = _headers(token)
        self._timeout = aiohttp.ClientTimeout(timeout)
        self._session: aiohttp.ClientSession | None = None
        self._attempts = attempts

    async def check(self, *, story_id: int | str | None = None, **story: Unpack[Story]) -> CheckAnswer:
        """Check a story; nothing is stored."""
        return await self._send(calls.check(story_id, story))

    async def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        return (await self._send(calls.check_batch(stories))).results

    async def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        return await self._send(calls.put(story_id, path, story, restore=restore))

    async def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return await self._send(calls.story(story_id))

    async def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return await self._send(calls.matches(story_id))

    async def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return await self._send(calls.compare(a, b))

    async def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return await self._send(calls.forget(story_id))

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def _send(self, call: Call[A]) -> A:
        if self._session is None:
            raise RuntimeError("use the client in `async with`")
        async for attempt in stamina.retry_context(
            is_worth_retrying, attempts=self._attempts, wait_max=MOST_WAIT_SECONDS
        ):
            with attempt:
                try:
                    async with self._session.request(call.method, self._url + call.path, data=call.body) as response:
                        body, headers = await response.read(), response.headers
                except (TimeoutError, aiohttp.ClientError) as error:
                    raise ServiceError(f"{self._url} does not answer: {type(error).__name__}") from error
                return call.result(response.status, body, headers.get("Retry-After"))
        raise AssertionError("unreachable: the last attempt returns or raises")
