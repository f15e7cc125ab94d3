"""The HTTP service while it runs: its parts, which are opened when they can be, and the lanes of its requests.

A lane says how many requests are worked on at a time, how many wait for their turn, and how long.  Short texts and long
ones have a lane each, so that a novel does not hold up the stories behind it.  Work that has begun is never cancelled:
its threads would go on, beside those of the request that takes its place.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from aiohttp import web
from msgspec import Struct

from neardup.config import Config, Serve
from neardup.errors import LedgerReplaced, Transient
from neardup.http.requests import UNAVAILABLE, ProblemType, Refused, read_body
from neardup.http.tokens import TokenFile
from neardup.ledger import Ledger
from neardup.pages.reader_pool import ReaderPool
from neardup.query.check import Checker
from neardup.query.complaints import Complaints
from neardup.query.submissions import Submissions
from neardup.serve.tokens import AuthorTokens, Token
from neardup.telemetry.log import log, log_phase
from neardup.telemetry.metrics import QUEUE_DEPTH, RETRIES

T = TypeVar("T")
BUSY = ProblemType("busy", 429, "Too many requests are waiting", may_pass=True)
LATE_SECONDS = 0.5  # after its deadline, work may still say what it has
OPEN_RETRY_SECONDS = 5.0
SHORT_SLOTS = 16  # most of a check is spent waiting for the store
LONG_SLOTS = 1  # a novel occupies a core for seconds


class ServiceParts(Struct, frozen=True):
    """The open parts of the HTTP service; `reader` is a read-only connection to the ledger.

    Without `author_tokens` no key signs tokens of authors.
    """

    config: Config
    checker: Checker
    submissions: Submissions
    reader: Ledger
    pool: ReaderPool
    complaints: Complaints
    author_tokens: AuthorTokens | None = None


class Deadline:
    """A point in time; what is `left` until then is in seconds, and negative afterwards."""

    def __init__(self, seconds: float) -> None:
        self._began = time.monotonic()
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._seconds - self.taken

    @property
    def taken(self) -> float:
        """Seconds since the deadline was set."""
        return time.monotonic() - self._began


class Lane:
    """Works on a few requests at a time; up to `queue` more wait."""

    def __init__(self, name: str, slots: int, queue: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._queue = queue
        self._waiting = 0
        self._depth = QUEUE_DEPTH.labels(name)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def carry_out(self, work: Coroutine[Any, Any, T], deadline: Deadline, story: asyncio.Lock | None = None) -> T:
        """The result of `work`, once it had its turn, and the turn of its `story`, which it holds until it ends.

        Raises Refused: BUSY if too many wait, UNAVAILABLE if the deadline passes.  Work that has begun is never
        cancelled: its threads would go on, and a new request would take its place beside them.
        """
        story = story or asyncio.Lock()
        try:
            await self._wait_for_turn(story, deadline)
        except BaseException:
            work.close()
            raise
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._finish_task, story))
        await asyncio.wait({task}, timeout=max(deadline.left, 0) + LATE_SECONDS)
        if not task.done():
            raise Refused(UNAVAILABLE, "the check takes longer than serve.deadline_seconds")
        return task.result()

    async def drain(self) -> None:
        """Wait for the work under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_for_turn(self, story: asyncio.Lock, deadline: Deadline) -> None:
        if (self._free.locked() or story.locked()) and self._waiting >= self._queue:
            raise Refused(BUSY, f"{self._waiting} requests are waiting")
        self._waiting += 1
        self._depth.set(self._waiting)
        try:
            async with asyncio.timeout(max(deadline.left, 0)):
                await story.acquire()
                try:
                    await self._free.acquire()
                except BaseException:
                    story.release()
                    raise
        except TimeoutError:
            raise Refused(UNAVAILABLE, "the request had no turn within serve.deadline_seconds") from None
        finally:
            self._waiting -= 1
            self._depth.set(self._waiting)

    def _finish_task(self, story: asyncio.Lock, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._free.release()
        story.release()
        if not task.cancelled():
            task.exception()  # marks it as seen: no caller waits for work that is late


class Service:
    """The HTTP service: its parts while they are open, its tokens, and its lanes.

    Without `tokens`, every request may do everything.  `announce` is called with what the service does, as it changes.
    """

    def __init__(
        self,
        section: Serve,
        open_parts: Callable[[], AbstractAsyncContextManager[ServiceParts]],
        tokens: TokenFile[Token] | None,
        stop: asyncio.Event,
        *,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.section = section
        self.tokens = tokens
        self.short = Lane("serve", SHORT_SLOTS, section.queue)
        self.long = Lane("serve_long", LONG_SLOTS, section.queue)
        self._arriving = 0
        self._stories = WeakValueDictionary[int, asyncio.Lock]()
        self._open_parts = open_parts
        self._stop = stop
        self._announce = announce
        self._closing = asyncio.Event()  # the parts: for good, or to open them again
        self._is_drained = False
        self._parts: ServiceParts | None = None
        self._doing = "starting"

    @property
    def parts(self) -> ServiceParts:
        """The open parts.  Raises Refused while they cannot be opened."""
        if self._parts is None:
            raise Refused(UNAVAILABLE, self._doing)
        return self._parts

    def get_turn(self, story_id: int) -> asyncio.Lock:
        """The turn of a story: those that write it hold it one after the other, in the order in which they came."""
        return self._stories.setdefault(story_id, asyncio.Lock())

    async def receive(self, request: web.Request, deadline: Deadline) -> bytes:
        """The body of a request, which has no turn before it has arrived: a slow client holds up no other.

        Raises Refused: SLOW after the deadline, BUSY if as many bodies as requests may wait are arriving.
        """
        if self._arriving >= self.section.queue:
            raise Refused(BUSY, f"{self._arriving} bodies are arriving")
        self._arriving += 1
        try:
            return await read_body(request, deadline.left)
        finally:
            self._arriving -= 1

    @property
    def state(self) -> tuple[bool, str]:
        """Whether the service is ready for requests, and what it does."""
        if self._stop.is_set():
            return False, "stopping"
        return self._parts is not None, self._doing

    async def keep_open(self) -> None:
        """Open the parts, again and again while that fails and after `reopen`, and close them after `close`.

        An error that only an operator can mend sets `stop` and is raised.
        """
        former: Ledger | None = None
        try:
            while not self._is_drained:
                self._closing.clear()
                try:
                    if former is not None:
                        former.refuse_successor()
                    async with AsyncExitStack() as stack:
                        with log_phase("serve", "opening ledger and index"):
                            parts = await stack.enter_async_context(self._open_parts())
                        self._parts, former = parts, parts.reader
                        self._set_doing("serving")
                        await self._closing.wait()
                        self._parts = None
                        await self._drain()
                except Transient as error:
                    RETRIES.labels("open", error.reason).inc()
                    self._set_doing(f"waiting: {error}")
                    log.warning("the service waits", why=str(error))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._closing.wait(), OPEN_RETRY_SECONDS)
        finally:
            self._parts = None
            self._stop.set()

    def reopen(self, why: LedgerReplaced) -> None:
        """Close the parts once the work under way has ended, and open them again."""
        if self._parts is not None:
            log.warning("the service opens its ledger again", why=str(why))
            self._parts = None
            self._set_doing(f"waiting: {why}")
            self._closing.set()

    async def close(self) -> None:
        """Wait for the work under way; then `keep_open` closes the parts."""
        await self._drain()
        self._is_drained = True
        self._closing.set()

    async def _drain(self) -> None:
        await self.short.drain()
        await self.long.drain()

    def _set_doing(self, doing: str) -> None:
        self._doing = doing
        self._announce(doing)


SERVICE = web.AppKey("service", Service)
