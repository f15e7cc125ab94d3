"""Clients of the HTTP service: `neardup.Client`, and `neardup.AsyncClient` for programs with an event loop.

    with neardup.Client("http://127.0.0.1:8766", token=TOKEN) as client:
        answer = client.check(language="hi", text=draft)

Each has a method for each operation of the service.  They raise ServiceError, and InvalidArgument for a call that
cannot be sent.  The synchronous one runs the other one, in an event loop of its own.

A call is sent again while the service is busy or cannot be reached, `attempts` times in all and until `deadline`
seconds have passed, after the time that the service asks for; each further attempt is a line of the logger
"neardup.client".  Every call may be repeated without harm; where an answer was lost, its repetition may be refused.
"""

import asyncio
import functools
import logging
import os
import random
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Concatenate, Literal, NotRequired, ParamSpec, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode, urlsplit

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from yarl import URL

from neardup.errors import NeardupError
from neardup.serve import messages, rights_messages
from neardup.serve.messages import (
    Answer,
    CheckAnswer,
    CompareAnswer,
    DiscardedDraft,
    Draft,
    Forgotten,
    MatchesAnswer,
    Problem,
    ProofAnswer,
    Stored,
)
from neardup.serve.rights_messages import (
    AuthorCopies,
    AuthorToken,
    Complaint,
    ComplaintsAnswer,
    Digest,
    ForgottenComplainant,
    Permission,
    PermissionsAnswer,
)
from neardup.source.parse import quote_id

A = TypeVar("A", bound=Answer)
P = ParamSpec("P")
T = TypeVar("T")
RETRIED = {408, 429, 503}
RETRIED_OF_PROXIES = {502, 503, 504}
TIMEOUT_SECONDS = 10.0
DEADLINE_SECONDS = 30.0
ATTEMPTS = 4
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.1, 2.0  # at most, where the service names no time
log = logging.getLogger("neardup.client")
LISTED_ID: TypeAdapter[int | str] = TypeAdapter(messages.ListedId)
AUTHOR_ID: TypeAdapter[str] = TypeAdapter(messages.AuthorId)


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


class Story(TypedDict):
    """A story to check: its language, either `text` or `html`, and what is known of it."""

    language: str
    text: NotRequired[str]
    html: NotRequired[str]
    author_id: NotRequired[int | str | None]
    title: NotRequired[str | None]
    published_at: NotRequired[str | None]  # RFC 3339


class DraftText(TypedDict):
    """A draft: its language, its author, and either `text` or `html`."""

    language: str
    author_id: int | str
    text: NotRequired[str]
    html: NotRequired[str]
    title: NotRequired[str | None]


class Grant(TypedDict, total=False):
    """Who may use whose text: an author's (all, a serial or a story), or a catalogue's works; times are in RFC 3339."""

    granted_by: int | str
    story_id: int | str
    serial: str
    catalogue: str
    granted_to: int | str | None  # None for everyone
    licence: str | None
    note: str
    since: str | None
    until: str | None


class ChosenPermissions(TypedDict, total=False):
    """Which permissions to list."""

    author_id: int | str
    story_id: int | str
    catalogue: str
    ended: bool
    first: int
    limit: int


class Side(TypedDict, total=False):
    """One side of a comparison: the id of a story on record, a text, or a page."""

    story_id: int | str
    text: str
    html: str


class ComplaintText(TypedDict):
    """A complaint: the story, the original by its id or its text if it is known, and who complains."""

    story_id: int | str
    complainant: str
    contact: str
    statement: str
    original_id: NotRequired[int | str | None]
    original_text: NotRequired[str | None]
    author_id: NotRequired[int | str | None]


class AsyncClient:
    """Calls the service at `url`, such as "http://127.0.0.1:8766", from one event loop; use it in `async with`.

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

    async def check(self, *, story_id: int | str | None = None, **story: Unpack[Story]) -> CheckAnswer:
        """Check a story; nothing is stored."""
        return await self._post("/v1/check", messages.CheckRequest, {"id": story_id, **story}, CheckAnswer)

    async def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        listed = list(stories) if isinstance(stories, Iterable) else stories
        batch = await self._post("/v1/check:batch", messages.BatchRequest, {"stories": listed}, messages.BatchAnswer)
        return batch.results

    async def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        body = encode_body(messages.PutRequest, {"path": path, "restore": restore, **story})
        return await self._send("PUT", _make_path(story_id), body, CheckAnswer)

    async def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return await self._send("GET", _make_path(story_id), None, Stored)

    async def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return await self._send("GET", f"{_make_path(story_id)}/matches", None, MatchesAnswer)

    async def proof(self, story_id: int | str) -> ProofAnswer:
        """Since when the texts of a story are known."""
        return await self._send("GET", f"{_make_path(story_id)}/proof", None, ProofAnswer)

    async def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return await self._post("/v1/compare", messages.CompareRequest, {"a": a, "b": b}, CompareAnswer)

    async def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return await self._send("DELETE", _make_path(story_id), None, Forgotten)

    async def put_draft(self, story_id: int | str, **draft: Unpack[DraftText]) -> CheckAnswer:
        """Store a draft, in place of the former one, and check it; what its author wrote before is no match."""
        body = encode_body(messages.DraftRequest, draft)
        return await self._send("PUT", _make_path(story_id, "drafts"), body, CheckAnswer)

    async def draft(self, story_id: int | str) -> Draft:
        """When a draft was saved, and when it expires."""
        return await self._send("GET", _make_path(story_id, "drafts"), None, Draft)

    async def check_draft(self, story_id: int | str) -> CheckAnswer:
        """Check a draft again, as it was saved last."""
        return await self._send("POST", f"{_make_path(story_id, 'drafts')}/check", None, CheckAnswer)

    async def discard_draft(self, story_id: int | str) -> DiscardedDraft:
        """Discard a draft."""
        return await self._send("DELETE", _make_path(story_id, "drafts"), None, DiscardedDraft)

    async def complain(self, **complaint: Unpack[ComplaintText]) -> Complaint:
        """Complain of a story.  Sent twice, the second is refused with the number of the first."""
        return await self._post("/v1/complaints", rights_messages.ComplaintRequest, complaint, Complaint)

    async def complaints(self, *, closed: bool = False, first: int = 0, limit: int = 50) -> ComplaintsAnswer:
        """The open complaints, the next deadline first; or the closed ones, the last one first."""
        query = encode_query(rights_messages.ComplaintsQuery, {"closed": closed, "first": first, "limit": limit})
        return await self._send("GET", f"/v1/complaints?{query}", None, ComplaintsAnswer)

    async def complaint(self, number: int) -> Complaint:
        """A complaint with its evidence and its log."""
        return await self._send("GET", f"/v1/complaints/{_check_number(number)}", None, Complaint)

    async def answer_complaint(self, number: int, *, by: Literal["author", "complainant"], text: str) -> Complaint:
        """Record what the author or the complainant answers."""
        path = f"/v1/complaints/{_check_number(number)}/answers"
        return await self._post(path, rights_messages.ComplaintAnswerRequest, {"by": by, "text": text}, Complaint)

    async def forget_complainant(self, number: int) -> ForgottenComplainant:
        """Forget the name, the contact and the words of a complainant."""
        path = f"/v1/complaints/{_check_number(number)}/complainant"
        return await self._send("DELETE", path, None, ForgottenComplainant)

    async def enter_permission(self, **grant: Unpack[Grant]) -> Permission:
        """Enter a permission: who may use whose text."""
        return await self._post("/v1/permissions", rights_messages.PermissionRequest, grant, Permission)

    async def permissions(self, **chosen: Unpack[ChosenPermissions]) -> PermissionsAnswer:
        """Some of the permissions, those entered last first; by default those that have not ended."""
        query = encode_query(rights_messages.PermissionsQuery, chosen)
        return await self._send("GET", f"/v1/permissions?{query}", None, PermissionsAnswer)

    async def permission(self, permission_id: int) -> Permission:
        """A permission on record."""
        return await self._send("GET", f"/v1/permissions/{_check_number(permission_id)}", None, Permission)

    async def revoke_permission(self, permission_id: int) -> Permission:
        """Revoke a permission."""
        return await self._send("DELETE", f"/v1/permissions/{_check_number(permission_id)}", None, Permission)

    async def author_token(self, author_id: int | str) -> AuthorToken:
        """Make a token by which an author reads the copies of their own stories."""
        return await self._send("POST", f"{_make_author_path(author_id)}/token", None, AuthorToken)

    async def author_copies(
        self, author_id: int | str, *, since: str | None = None, before: int | None = None, limit: int = 50
    ) -> AuthorCopies:
        """The stories by others that hold text of an author's stories, the latest flag first."""
        query = encode_query(rights_messages.CopiesQuery, {"since": since, "before": before, "limit": limit})
        return await self._send("GET", f"{_make_author_path(author_id)}/copies?{query}", None, AuthorCopies)

    async def new_copies(self, *, since: str, after: str | None = None, limit: int = 100) -> Digest:
        """The new copies since a time (RFC 3339), by the author whose text they hold."""
        query = encode_query(rights_messages.DigestQuery, {"since": since, "after": after, "limit": limit})
        return await self._send("GET", f"/v1/authors/copies?{query}", None, Digest)

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
        url = URL(self._url + path, encoded=True)  # encoded, or the dots and slashes of an id would be a path
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
    return random.uniform(0, min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_WAIT_SECONDS))  # noqa: S311 - spreads clients


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


def _make_path(story_id: int | str, collection: str = "stories") -> str:
    try:
        listed = LISTED_ID.validate_python(story_id)
    except ValidationError as error:
        raise InvalidArgument(f"story_id: {describe_wrong(error)}") from None
    return f"/v1/{collection}/{quote_id(str(listed))}"


def _make_author_path(author_id: int | str) -> str:
    try:
        listed = AUTHOR_ID.validate_python(author_id)
    except ValidationError as error:
        raise InvalidArgument(f"author_id: {describe_wrong(error)}") from None
    if not listed:
        raise InvalidArgument("author_id: is empty")
    return f"/v1/authors/{quote_id(listed)}"


def _check_number(number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise InvalidArgument(f"number: {number!r} is not the number of a complaint or permission")
    return number


def _wait_for(
    call: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """The method of the synchronous client that runs a method of the other one."""

    @functools.wraps(call)
    def run(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(call(self._open, *args, **kwargs))

    return run


class Client:
    """As `AsyncClient`, for programs without an event loop; safe for use by several threads, and after a fork.

    The calls run in a thread, which the first one starts.
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
        self._make = functools.partial(AsyncClient, url, token, timeout=timeout, deadline=deadline, attempts=attempts)
        self._client = self._make()  # raises InvalidArgument; `_start` makes the one that is used
        self._starting = threading.Lock()
        self._running: tuple[int, asyncio.AbstractEventLoop] | None = None  # the process and the loop in it
        self._finalizer: weakref.finalize[..., Client] | None = None

    check = _wait_for(AsyncClient.check)
    check_batch = _wait_for(AsyncClient.check_batch)
    put = _wait_for(AsyncClient.put)
    story = _wait_for(AsyncClient.story)
    matches = _wait_for(AsyncClient.matches)
    proof = _wait_for(AsyncClient.proof)
    compare = _wait_for(AsyncClient.compare)
    forget = _wait_for(AsyncClient.forget)
    put_draft = _wait_for(AsyncClient.put_draft)
    draft = _wait_for(AsyncClient.draft)
    check_draft = _wait_for(AsyncClient.check_draft)
    discard_draft = _wait_for(AsyncClient.discard_draft)
    complain = _wait_for(AsyncClient.complain)
    complaints = _wait_for(AsyncClient.complaints)
    complaint = _wait_for(AsyncClient.complaint)
    answer_complaint = _wait_for(AsyncClient.answer_complaint)
    forget_complainant = _wait_for(AsyncClient.forget_complainant)
    enter_permission = _wait_for(AsyncClient.enter_permission)
    permissions = _wait_for(AsyncClient.permissions)
    permission = _wait_for(AsyncClient.permission)
    revoke_permission = _wait_for(AsyncClient.revoke_permission)
    author_token = _wait_for(AsyncClient.author_token)
    author_copies = _wait_for(AsyncClient.author_copies)
    new_copies = _wait_for(AsyncClient.new_copies)

    def close(self) -> None:
        """Close the connections, and cancel the calls under way."""
        if self._finalizer is not None:
            self._finalizer()
        self._running = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _open(self) -> AsyncClient:
        """The client in the loop, which is started where this process has none."""
        if self._running is None or self._running[0] != os.getpid():
            with self._starting:
                if self._running is None or self._running[0] != os.getpid():
                    self._start()
        return self._client

    def _start(self) -> None:
        self._client, loop, pid = self._make(), asyncio.new_event_loop(), os.getpid()
        thread = threading.Thread(target=loop.run_forever, name="neardup.client", daemon=True)
        thread.start()
        self._finalizer = weakref.finalize(self, _stop, pid, loop, thread, self._client)
        self._running = pid, loop

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        assert self._running is not None
        future = asyncio.run_coroutine_threadsafe(call, self._running[1])
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


def _stop(pid: int, loop: asyncio.AbstractEventLoop, thread: threading.Thread, client: AsyncClient) -> None:
    """End the loop of a client; that of the process before a fork is not ours to end."""
    if pid != os.getpid():
        return

    async def close() -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await client.close()
        await loop.shutdown_default_executor()

    asyncio.run_coroutine_threadsafe(close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
