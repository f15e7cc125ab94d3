"""Clients of the HTTP service: `neardup.Client`, and `neardup.AsyncClient` for programs with an event loop.

    with neardup.Client("http://127.0.0.1:8766", token=TOKEN) as client:
        answer = client.check(language="hi", text=draft)

Each has a method for each operation of the service; `serve.transport` sends their calls.  They raise ServiceError, and
InvalidArgument for a call that cannot be sent.  The synchronous one runs the other one, in an event loop of its own.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Literal, NotRequired, Self, TypedDict, TypeVar, Unpack

from pydantic import TypeAdapter, ValidationError

from neardup.serve import messages, rights_messages
from neardup.serve.messages import (
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
from neardup.serve.transport import (
    ATTEMPTS,
    DEADLINE_SECONDS,
    TIMEOUT_SECONDS,
    InvalidArgument,
    Transport,
    describe_wrong,
    encode_body,
    encode_query,
)
from neardup.source.parse import quote_id

T = TypeVar("T")
LISTED_ID: TypeAdapter[int | str] = TypeAdapter(messages.ListedId)
AUTHOR_ID: TypeAdapter[str] = TypeAdapter(messages.AuthorId)


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


class AsyncClient(Transport):
    """Calls the service at `url`, such as "http://127.0.0.1:8766", from one event loop; use it in `async with`.

    An attempt takes at most `timeout` seconds, and a call with all its attempts at most `deadline`.  Raises
    InvalidArgument.
    """

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
        self._make = partial(AsyncClient, url, token, timeout=timeout, deadline=deadline, attempts=attempts)
        self._client = self._make()
        self._starting = threading.Lock()
        self._running: tuple[int, asyncio.AbstractEventLoop] | None = None  # the process and the loop in it
        self._finalizer: weakref.finalize[..., Client] | None = None

    def check(self, *, story_id: int | str | None = None, **story: Unpack[Story]) -> CheckAnswer:
        """Check a story; nothing is stored."""
        return self._run(self._open.check(story_id=story_id, **story))

    def check_batch(self, stories: Iterable[Story]) -> list[CheckAnswer | Problem]:
        """Check up to 100 stories; one that cannot be checked has a Problem in place of a result."""
        return self._run(self._open.check_batch(stories))

    def put(
        self, story_id: int | str, *, path: str | None = None, restore: bool = False, **story: Unpack[Story]
    ) -> CheckAnswer:
        """Check a story and store it; one that was forgotten only with `restore`."""
        return self._run(self._open.put(story_id, path=path, restore=restore, **story))

    def story(self, story_id: int | str) -> Stored:
        """A story on record."""
        return self._run(self._open.story(story_id))

    def matches(self, story_id: int | str) -> MatchesAnswer:
        """The flagged pairs of a story on record."""
        return self._run(self._open.matches(story_id))

    def proof(self, story_id: int | str) -> ProofAnswer:
        """Since when the texts of a story are known."""
        return self._run(self._open.proof(story_id))

    def compare(self, a: Side, b: Side) -> CompareAnswer:
        """Compare two stories."""
        return self._run(self._open.compare(a, b))

    def forget(self, story_id: int | str) -> Forgotten:
        """Forget a story."""
        return self._run(self._open.forget(story_id))

    def put_draft(self, story_id: int | str, **draft: Unpack[DraftText]) -> CheckAnswer:
        """Store a draft, in place of the former one, and check it; what its author wrote before is no match."""
        return self._run(self._open.put_draft(story_id, **draft))

    def draft(self, story_id: int | str) -> Draft:
        """When a draft was saved, and when it expires."""
        return self._run(self._open.draft(story_id))

    def check_draft(self, story_id: int | str) -> CheckAnswer:
        """Check a draft again, as it was saved last."""
        return self._run(self._open.check_draft(story_id))

    def discard_draft(self, story_id: int | str) -> DiscardedDraft:
        """Discard a draft."""
        return self._run(self._open.discard_draft(story_id))

    def complain(self, **complaint: Unpack[ComplaintText]) -> Complaint:
        """Complain of a story.  Sent twice, the second is refused with the number of the first."""
        return self._run(self._open.complain(**complaint))

    def complaints(self, *, closed: bool = False, first: int = 0, limit: int = 50) -> ComplaintsAnswer:
        """The open complaints, the next deadline first; or the closed ones, the last one first."""
        return self._run(self._open.complaints(closed=closed, first=first, limit=limit))

    def complaint(self, number: int) -> Complaint:
        """A complaint with its evidence and its log."""
        return self._run(self._open.complaint(number))

    def answer_complaint(self, number: int, *, by: Literal["author", "complainant"], text: str) -> Complaint:
        """Record what the author or the complainant answers."""
        return self._run(self._open.answer_complaint(number, by=by, text=text))

    def forget_complainant(self, number: int) -> ForgottenComplainant:
        """Forget the name, the contact and the words of a complainant."""
        return self._run(self._open.forget_complainant(number))

    def enter_permission(self, **grant: Unpack[Grant]) -> Permission:
        """Enter a permission: who may use whose text."""
        return self._run(self._open.enter_permission(**grant))

    def permissions(self, **chosen: Unpack[ChosenPermissions]) -> PermissionsAnswer:
        """Some of the permissions, those entered last first; by default those that have not ended."""
        return self._run(self._open.permissions(**chosen))

    def permission(self, permission_id: int) -> Permission:
        """A permission on record."""
        return self._run(self._open.permission(permission_id))

    def revoke_permission(self, permission_id: int) -> Permission:
        """Revoke a permission."""
        return self._run(self._open.revoke_permission(permission_id))

    def author_token(self, author_id: int | str) -> AuthorToken:
        """Make a token by which an author reads the copies of their own stories."""
        return self._run(self._open.author_token(author_id))

    def author_copies(
        self, author_id: int | str, *, since: str | None = None, before: int | None = None, limit: int = 50
    ) -> AuthorCopies:
        """The stories by others that hold text of an author's stories, the latest flag first."""
        return self._run(self._open.author_copies(author_id, since=since, before=before, limit=limit))

    def new_copies(self, *, since: str, after: str | None = None, limit: int = 100) -> Digest:
        """The new copies since a time (RFC 3339), by the author whose text they hold."""
        return self._run(self._open.new_copies(since=since, after=after, limit=limit))

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
