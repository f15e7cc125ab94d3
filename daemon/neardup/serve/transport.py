"""Sends the calls of the clients: attempts, deadline, what is an answer, and the errors.

A call is sent again while the service is busy or cannot be reached, up to `attempts` times and until `deadline` seconds
have passed in all, after the time that the service asks for; each further attempt is a line of the logger
"neardup.client".  Every call may be repeated without harm.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError
from yarl import URL

from neardup.errors import NeardupError
from neardup.serve.messages import Answer, Problem

A = TypeVar("A", bound=Answer)
RETRIED = {408, 429, 503}
RETRIED_OF_PROXIES = {502, 503, 504}
TIMEOUT_SECONDS = 10.0
DEADLINE_SECONDS = 30.0
ATTEMPTS = 4
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.1, 2.0  # before an attempt, where the service names no time
log = logging.getLogger("neardup.client")


class InvalidArgument(NeardupError, ValueError):
    """An argument with which no call can be sent; the message names it."""


class ServiceError(NeardupError):
    """The service refused a request, or could not be reached.

    `problem` is its answer, None if there was none.  With `fail_open`, nothing is known about the story: publish it,
    and check it later.
    """

    def __init__(self, message: str, problem: Problem | None = None, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.wait_seconds = wait_seconds  # before the call is worth another attempt, None where it never is

    @property
    def fail_open(self) -> bool:
        """Whether the failure is the service's."""
        return self.problem is None or self.problem.fail_open


class Transport:
    """A connection to the service at `url`, such as "http://127.0.0.1:8766", for one event loop.

    An attempt takes at most `timeout` seconds, and a call with all its attempts at most `deadline`.  Raises
    InvalidArgument.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        deadline: float = DEADLINE_SECONDS,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._url = _find_base(url)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "neardup"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {_check_token(token)}"
        for name, value in (("timeout", timeout), ("deadline", deadline), ("attempts", attempts)):
            if not (isinstance(value, int | float) and value > 0):
                raise InvalidArgument(f"{name}: {value!r} is not a number above 0")
        self._timeout, self._deadline, self._attempts = timeout, deadline, attempts
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _post(self, path: str, model: type[BaseModel], members: Mapping[str, Any], answer: type[A]) -> A:
        return await self._send("POST", path, encode_body(model, members), answer)

    async def _send(self, method: str, path: str, body: bytes | None, answer: type[A]) -> A:
        """Send a call until it is answered, or is not worth another attempt."""
        loop = asyncio.get_running_loop()
        until, attempt = loop.time() + self._deadline, 1
        while True:
            try:
                return await self._try(method, path, body, answer, until)
            except ServiceError as error:
                wait = error.wait_seconds
                if wait is None or attempt >= self._attempts or loop.time() + wait >= until:
                    raise
                wait = wait or _compute_backoff(attempt)
                log.warning("%s: trying again in %.1f s", error, wait)
            await asyncio.sleep(min(wait, until - loop.time()))
            attempt += 1

    async def _try(self, method: str, path: str, body: bytes | None, answer: type[A], until: float) -> A:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=aiohttp.ClientTimeout(None))
        url = URL(self._url + path, encoded=True)  # an id of dots or slashes is no path
        try:
            async with (
                asyncio.timeout_at(min(until, asyncio.get_running_loop().time() + self._timeout)),
                self._session.request(method, url, data=body, allow_redirects=False) as response,
            ):
                return _read_result(f"{method} {path}", answer, response, await response.read())
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ServiceError(f"{self._url} does not answer: {type(error).__name__}", wait_seconds=0.0) from error


def _read_result(call: str, answer: type[A], response: aiohttp.ClientResponse, body: bytes) -> A:
    """The answer to a call.  Raises ServiceError for a problem."""
    status, wait = response.status, _wait_seconds(response.headers.get("Retry-After", ""))
    try:
        if status == 200:
            return answer.model_validate_json(body)
        problem = Problem.model_validate_json(body)
    except ValidationError:
        wait_for_proxy = wait if status in RETRIED_OF_PROXIES else None
        raise ServiceError(f"{call}: status {status}, and no answer of neardup", None, wait_for_proxy) from None
    raise ServiceError(f"{call}: {problem.title}: {problem.detail}", problem, wait if status in RETRIED else None)


def _wait_seconds(retry_after: str) -> float:
    """What the header asks for, which is seconds or a time (RFC 9110, 10.2.3); 0 for anything else."""
    if retry_after.isascii() and retry_after.isdecimal():
        return float(retry_after)
    with suppress(ValueError, OverflowError):
        at = parsedate_to_datetime(retry_after)
        return max(((at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds(), 0.0)
    return 0.0


def _compute_backoff(attempt: int) -> float:
    """Seconds before the attempt after this one: exponential with full jitter."""
    return random.uniform(0, min(FIRST_WAIT_SECONDS * 2**attempt, LONGEST_WAIT_SECONDS))  # noqa: S311 - spreads clients


def encode_body(model: type[BaseModel], members: Mapping[str, Any]) -> bytes:
    """What a call sends.  Raises InvalidArgument, which names every wrong member."""
    try:
        return model.model_validate(members).model_dump_json(exclude_none=True).encode()
    except ValidationError as error:
        raise InvalidArgument(describe_wrong(error)) from None
    except PydanticSerializationError:
        raise InvalidArgument("a text has lone surrogates, which UTF-8 cannot encode") from None


def encode_query(model: type[BaseModel], members: Mapping[str, Any]) -> str:
    """A query.  Raises InvalidArgument, which names every wrong member."""
    try:
        given = model.model_validate(members).model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    except ValidationError as error:
        raise InvalidArgument(describe_wrong(error)) from None
    return urlencode({name: str(value).lower() if value is True else value for name, value in given.items()})


def describe_wrong(error: ValidationError) -> str:
    """The wrong members of a message, in one line."""
    from neardup.http.requests import list_wrong_members  # noqa: PLC0415 - with the framework of the server

    return "; ".join(map(str, list_wrong_members(error)))


def _find_base(url: str) -> str:
    """The URL without a slash at its end.  Raises InvalidArgument."""
    with suppress(ValueError, AttributeError, TypeError):
        parts = urlsplit(url)
        is_of_http = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if is_of_http and not (parts.query or parts.fragment):
            return url.rstrip("/")
    raise InvalidArgument(f"url: {url!r} is not an http:// or https:// URL")


def _check_token(token: str) -> str:
    """The token.  Raises InvalidArgument, which does not show it."""
    if not (isinstance(token, str) and token and token.isascii() and token.isprintable()):
        raise InvalidArgument("token: not printable ASCII characters")
    return token
