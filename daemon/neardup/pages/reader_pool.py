"""A pool of reader processes."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import cast

from neardup.core.page import PageFingerprinted, Unreadable
from neardup.core.text.extraction import Extraction
from neardup.errors import Fatal, NeardupError, OverBudget, ReaderDied, Transient
from neardup.log import log
from neardup.pages.adaptive_limit import AdaptiveLimit
from neardup.pages.fork_server import start_server
from neardup.pages.plain_content import AnyContent, PlainContent
from neardup.pages.reader_process import FINGERPRINT, PREPARE, READ, SHINGLE, SPLIT, Answer, Request, Seconds
from neardup.pages.reader_rpc import ReaderConnection
from neardup.pages.reader_start import end_readers, start_readers
from neardup.pages.results import PageResult, PreparedResult, ReadFailed, ShingledResult, TextResult, failure_of
from neardup.pages.store import REFERENCE, WorkPages, location_of, path_of
from neardup.pages.watchdog import CHECK_SECONDS
from neardup.records import Dead, Story, is_work
from neardup.retry import retried, tried
from neardup.telemetry.metrics import PAGES_RENDERED, RETRIES, STAGE_SECONDS

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCHING, EXTRACTING, FINGERPRINTING = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
STRIKES = 2  # a page is read without its markup when so many processes died over it: one may die of something else
STARTS = 3  # that fail in a row end the run; fewer may have been killed by something else

OpenReaderPool = Callable[[], "ReaderPool"]  # raises Fatal for a store that does not exist


class ReaderPool:
    """Reads up to `most` pages at a time; `concurrency` adapts the number to the store.

    `submitted` is the folder of the submitted pages, `works` the store of the works.  There are `processes` of them.

    The server that forks the reader processes starts at once, and they start with the first page.  An error that
    concerns one page becomes a result; an error that is raised ends the whole run: Fatal if processes fail to start
    STARTS times in a row, or if the store cannot be used at all.
    """

    def __init__(
        self,
        content: AnyContent,
        extraction: Extraction,
        most: int,
        submitted: Path | None = None,
        works: WorkPages | None = None,
        *,
        processes: int = PROCESSES,
    ) -> None:
        start_server()
        self.concurrency = AdaptiveLimit(most)
        self.computing_seconds = 0.0  # spent on extracting and fingerprinting, for all pages together
        self._content = content
        plain_works = None if works is None else works._replace(content=PlainContent.of(works.content))
        self._settings = PlainContent.of(content), extraction, submitted, plain_works
        self._processes = min(processes, most)
        self._started: list[ReaderConnection] = []
        self._starting: asyncio.Task[None] | None = None
        self._watchdog: asyncio.Task[None] | None = None

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the running processes, as of their last answers."""
        return sum(connection.cpu_seconds for connection in self._connections)

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [connection.pid for connection in self._connections if connection.pid is not None]

    @property
    def costly_stories(self) -> list[int]:
        """The ids of the stories whose pages running processes compute, each already at a high cost of CPU time."""
        subjects = (connection.costly_subject for connection in self._connections)
        return [story_id for story_id in subjects if story_id is not None]

    @property
    def _connections(self) -> list[ReaderConnection]:
        return [connection for connection in self._started if not connection.ended]

    async def _start_missing(self) -> None:
        """Start as many processes as are missing: all at first, later those that have ended.  Raises Fatal."""
        self._started = self._connections
        missing = self._processes - len(self._started)
        try:
            self._started += await tried("start", lambda: start_readers(self._settings, missing), STARTS)
        except Transient as error:
            raise Fatal(f"reader processes failed to start three times in a row: {error}") from error
        self._watchdog = self._watchdog or asyncio.create_task(self._enforce_budgets(), name="budgets")

    async def _enforce_budgets(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for connection in self._connections:
                connection.enforce_budget()

    def path_of(self, story: Story) -> str:
        """A story's page, as a path below content.url."""
        return path_of(self._content, story)

    def location_of(self, story: Story) -> str:
        """Where a story's page is looked for: the path of a file, or the s3:// URL of an object."""
        _, _, submitted, works = self._settings
        return location_of(self._content, story, submitted, works)

    async def start(self) -> None:
        """Start the processes now, not with the first page.  Raises Fatal."""
        await self._least_busy()

    async def read(self, story: Story, etag: str | None, *, alone: bool = False) -> PageResult:
        """Fingerprint a story's page; NotModified where it still has this ETag.

        If `alone`, no other page is in flight meanwhile.
        """
        result, seconds = await self._read(FINGERPRINT, story, etag, alone=alone)
        if seconds is not None and isinstance(result, PageFingerprinted | Unreadable):
            self._observe(seconds)
            if result.rendered is not None:
                PAGES_RENDERED.labels(result.rendered).inc()
        return cast("PageResult", result)

    async def shingled(self, story: Story) -> ShingledResult:
        """Read a story's text, in the form in which texts are compared."""
        result, _ = await self._read(SHINGLE, story)
        return cast("ShingledResult", result)

    async def text(self, story: Story) -> TextResult:
        """Read a story's text and its normalised words."""
        result, _ = await self._read(SPLIT, story)
        return cast("TextResult", result)

    async def split(self, page: bytes) -> TextResult:
        """Find the story's text and its normalised words in a page at hand, which may be as hostile as any other."""
        return cast("TextResult", await self._given(SPLIT, page))

    async def prepare(self, page: bytes) -> PreparedResult:
        """As `split`, for a check of the story."""
        return cast("PreparedResult", await self._given(PREPARE, page))

    async def _given(self, operation: str, page: bytes) -> object:
        """Carry out an operation on a page at hand."""
        try:
            result, _ = await self._request(Request(operation, page), nullcontext)
        except NeardupError as error:
            return failure_of(error)
        return result

    async def read_with_text(self, story: Story, page: bytes | None = None) -> tuple[PageResult, str | None]:
        """Fingerprint a story's page, which may be at hand; also returns the story's text, None without a story."""
        result = (await self._read(READ, story))[0] if page is None else await self._given(READ, page)
        return cast("tuple[PageResult, str | None]", result if isinstance(result, tuple) else (result, None))

    def _observe(self, seconds: Seconds) -> None:
        fetching, extracting, fingerprinting = seconds
        FETCHING.observe(fetching)
        EXTRACTING.observe(extracting)
        FINGERPRINTING.observe(fingerprinting)
        self.computing_seconds += extracting + fingerprinting

    async def _read(self, operation: str, story: Story, etag: str | None = None, *, alone: bool = False) -> Answer:
        """Carry out an operation on a story's page; an error that concerns this page alone is returned as a failure."""
        path = f"{REFERENCE}{self.path_of(story)}" if is_work(story.id) else self.path_of(story)
        slot = self.concurrency.alone if alone else self.concurrency.slot
        try:
            return await self._request(Request(operation, path, etag, named=story.title is None), slot, story)
        except NeardupError as error:
            return failure_of(error), None

    async def _request(
        self, request: Request, slot: Callable[[], AbstractAsyncContextManager[None]], story: Story | None = None
    ) -> Answer:
        """Send a request until it is answered; the death of a process counts against the page that it was computing.

        A page that exceeds its budget, or over which STRIKES processes died, is read once more without its markup.

        Raises OverBudget.
        """
        strikes, story_id = 0, None if story is None else story.id
        subject = story_id if request.operation == FINGERPRINT else None

        async def attempt() -> Answer:
            async with slot():
                answer: Answer = await (await self._least_busy()).ask(request, subject)
                return answer

        while True:
            try:
                return await retried("fetch", attempt, story=story_id)
            except ReaderDied as death:
                strikes += death.computing
                if strikes > STRIKES:
                    return ReadFailed(Dead.QUARANTINED, f"{strikes} reader processes died computing this page"), None
                if strikes == STRIKES:
                    request = request._replace(parsed=False)
                RETRIES.labels("fetch", "crashed").inc()
            except OverBudget as error:
                log.warning("a page exceeds its budget", story=story_id, budget=error.resource, parsed=request.parsed)
                if not request.parsed:
                    raise
                request = request._replace(parsed=False)

    async def _least_busy(self) -> ReaderConnection:
        """The process with the fewest requests.  Waits for the start of a process only if none runs.  Raises Fatal."""
        while len(connections := self._connections) < self._processes:
            starting = self._starting = self._starting or asyncio.create_task(self._start_missing(), name="readers")
            if connections and not starting.done():
                break
            await asyncio.wait([starting])
            if self._starting is starting:
                self._starting = None
            if starting.cancelled():
                raise Transient("the reader pool is closed", "closed")
            starting.result()
        return min(connections, key=lambda connection: connection.under_way)

    async def aclose(self) -> None:
        """End the processes; requests under way fail.  A later request starts new processes."""
        tasks = [task for task in (self._starting, self._watchdog) if task is not None]
        self._starting = self._watchdog = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        started, self._started = self._started, []
        await end_readers(started)
