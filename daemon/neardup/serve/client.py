"""Clients of the HTTP service: `neardup.Client`, and `neardup.AsyncClient` for programs with an event loop.

    with neardup.Client("http://127.0.0.1:8766", token=TOKEN) as client:
        answer = client.check(language="hi", text=draft)

Both send a call again while the service is busy or cannot be reached, up to `attempts` times, and wait as long as it
asks.  Every call may be repeated without harm.  They raise ServiceError, and ValueError for a request that does not fit
the schema.  What a call sends, and what its answer means, is the same for both: a `Call`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, NotRequired, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import aiohttp
import stamina
import urllib3
from pydantic import BaseModel, ValidationError

from neardup.errors import NeardupError
from neardup.serve import messages
from neardup.serve.messages import CheckAnswer, CompareAnswer, Forgotten, MatchesAnswer, Problem, Stored

A = TypeVar("A", bound=messages.Answer)
RETRIED = {408, 429, 503}
TIMEOUT_SECONDS = 10.0
ATTEMPTS = 4
MOST_WAIT_SECONDS = 2.0


class Story(TypedDict):
    """A story to check: its language, either `text` or `html`, and what is known of it."""

    language: str
    text: NotRequired[str]
    html: NotRequired[str]
    author_id: NotRequired[str]
    title: NotRequired[str]
    published_at: NotRequired[str]  # RFC 3339


class Side(TypedDict, total=False):
    """One side of a comparison: the id of a story on record, a text, or a page."""

    story_id: int | str
    text: str
    html: str


class ServiceError(NeardupError):
    """The service refused a request, or could not be reached.

    `problem` is its answer, None if there was none.  With `fail_open`, nothing is known about the story: publish it,
    and check it later.
    """

    def __init__(self, message: str, problem: Problem | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after = retry_after

    @property
    def fail_open(self) -> bool:
        """Whether the failure is the service's."""
        return self.problem is None or self.problem.fail_open


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """One call: its method, its path, its body in JSON, and the model of its answer."""

    method: str
    path: str
    body: bytes | None
    answer: type[A]

    def result(self, status: int, body: bytes, retry_after: str | None) -> A:
        """The answer to the call.  Raises ServiceError for a problem."""
        try:
            if status == 200:
                return self.answer.model_validate_json(body)
            problem = Problem.model_validate_json(body)
        except ValidationError:
            raise ServiceError(f"{self.method} {self.path}: status {status}, and no answer of neardup") from None
        seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
        raise ServiceError(f"{self.method} {self.path}: {problem.title}: {problem.detail}", problem, seconds)


def is_worth_retrying(error: Exception) -> bool | float:
    """Whether to send a call again: True, or the seconds to wait first if the service asks for them."""
    if not isinstance(error, ServiceError) or (error.problem and error.problem.status not in RETRIED):
        return False
    return True if error.retry_after is None else error.retry_after


# One function makes each call of the clients.
def check_call(story_id: int | str | None, story: Story) -> Call[messages.CheckAnswer]:
    return _prepare_post("/v1/check", messages.CheckRequest(id=story_id, **story), messages.CheckAnswer)


def batch_call(stories: Iterable[Story]) -> Call[messages.BatchAnswer]:
    batch = messages.BatchRequest(stories=[messages.CheckRequest(**story) for story in stories])
    return _prepare_post("/v1/check:batch", batch, messages.BatchAnswer)


def compare_call(a: Side, b: Side) -> Call[messages.CompareAnswer]:
    request = messages.CompareRequest(a=messages.ComparedStory(**a), b=messages.ComparedStory(**b))
    return _prepare_post("/v1/compare", request, messages.CompareAnswer)


def put_call(
    story_id: int | str, path: str | None, story: Story, *, restore: bool = False
) -> Call[messages.CheckAnswer]:
    body = _body(messages.PutRequest(path=path, restore=restore, **story))
    return Call("PUT", _path_of(story_id), body, messages.CheckAnswer)


def story_call(story_id: int | str) -> Call[messages.Stored]:
    return Call("GET", _path_of(story_id), None, messages.Stored)


def matches_call(story_id: int | str) -> Call[messages.MatchesAnswer]:
    return Call("GET", f"{_path_of(story_id)}/matches", None, messages.MatchesAnswer)


def forget_call(story_id: int | str) -> Call[messages.Forgotten]:
    return Call("DELETE", _path_of(story_id), None, messages.Forgotten)


def _path_of(story_id: int | str) -> str:
    return f"/v1/stories/{quote(str(story_id), safe='')}"


def _prepare_post(path: str, request: BaseModel, answer: type[A]) -> Call[A]:
    return Call("POST", path, _body(request), answer)


def _body(request: BaseModel) -> bytes:
    return request.model_dump_json(exclude_none=True).encode()


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
        return self._send(check_call(story_id, story))

    def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        return self._send(batch_call(stories)).results

    def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        return self._send(put_call(story_id, path, story, restore=restore))

    def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return self._send(story_call(story_id))

    def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return self._send(matches_call(story_id))

    def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return self._send(compare_call(a, b))

    def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return self._send(forget_call(story_id))

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
        return await self._send(check_call(story_id, story))

    async def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        return (await self._send(batch_call(stories))).results

    async def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        return await self._send(put_call(story_id, path, story, restore=restore))

    async def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return await self._send(story_call(story_id))

    async def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return await self._send(matches_call(story_id))

    async def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return await self._send(compare_call(a, b))

    async def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return await self._send(forget_call(story_id))

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
