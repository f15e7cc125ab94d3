"""A pool of reader processes: it starts them, shares pages out among them, and ends them."""

import asyncio
import os
import select
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from neardup.core.columns import PackedPages, StoryColumns
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.page import Unreadable
from neardup.core.text.extraction import Extraction
from neardup.errors import Fatal, NeardupError, OverBudget, ReaderDied, Transient
from neardup.pages.fork_server import fork_reader, start_server
from neardup.pages.limits import AdaptiveLimit
from neardup.pages.reader_process import (
    CHECK,
    COMPARE,
    FINGERPRINT,
    READ,
    SHOW,
    Answers,
    Request,
    Settings,
)
from neardup.pages.reader_rpc import Failures, ReaderConnection, connect_reader
from neardup.pages.results import (
    Deliver,
    DeliverText,
    PageResult,
    PagesRead,
    ReadFailed,
    TextResult,
    make_failure,
    make_results,
)
from neardup.pages.store import (
    REFERENCE,
    AnyContent,
    PlainContent,
    WorkPages,
    find_location,
    list_modules,
    make_path,
    make_paths,
)
from neardup.pages.watchdog import CHECK_SECONDS, Record, Stillness, create_record
from neardup.records import Dead, Story, is_work
from neardup.retry import report_retry, retry_call, retry_times
from neardup.telemetry.log import log
from neardup.telemetry.metrics import PAGES_RENDERED, RETRIES, STAGE_SECONDS, observe_all

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCHING, EXTRACTING, FINGERPRINTING = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
STRIKES = 2  # a page is read without its markup when so many processes died over it: one may die of something else
OBSERVED_AT_ONCE = 256  # pages in the metrics of stages
PAGES_A_REQUEST = 64
GRACE_SECONDS = 1.0  # for a process to end by itself: native code must return to the interpreter first
START_CHECK_SECONDS = 1.0
STARTS = 3  # that fail in a row end the run; fewer may have been killed by something else

OpenReaderPool = Callable[[], "ReaderPool"]  # raises Fatal for a store that does not exist


class ReaderPool:
    """Reads up to `most` pages at a time; `concurrency` adapts the number to the store.

    `submitted` is the folder of the submitted pages, `works` the store of the works; `processes` share the work.

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
        self._unobserved: list[npt.NDArray[np.float32]] = []  # seconds that are yet to be counted in the metrics
        self._content = content
        plain_works = None if works is None else works._replace(content=PlainContent.of(works.content))
        self._settings = Settings(PlainContent.of(content), extraction, submitted, plain_works)
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
        return [connection.pid for connection in self._connections if connection.pid is not None]

    @property
    def costly_stories(self) -> list[int]:
        """The ids of the stories whose pages are being fingerprinted, each already at a high cost of CPU time."""
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
            self._started += await retry_times("start", lambda: start_readers(self._settings, missing), STARTS)
        except Transient as error:
            raise Fatal(f"reader processes failed to start three times in a row: {error}") from error
        self._watchdog = self._watchdog or asyncio.create_task(self._enforce_budgets(), name="budgets")

    async def _enforce_budgets(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for connection in self._connections:
                connection.enforce_budget()

    def make_path(self, story: Story) -> str:
        """A story's page, as a path below content.url."""
        return make_path(self._content, story)

    def find_location(self, story: Story) -> str:
        """Where a story's page is looked for: the path of a file, or the s3:// URL of an object."""
        return find_location(self._content, story, self._settings.submitted, self._settings.works)

    async def start(self) -> None:
        """Start the processes now, not with the first page.  Raises Fatal."""
        await self._choose_least_busy()

    async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        """Fingerprint the pages of stories; NotModified where one still has its ETag.

        Results are delivered as they arrive.  A page that fails is read again by itself.
        """
        parts = (slice(at, at + PAGES_A_REQUEST) for at in range(0, len(stories), PAGES_A_REQUEST))
        await _run_together(self._read_some(FINGERPRINT, stories[part], etags[part], deliver) for part in parts)

    async def read_to_compare(self, stories: Sequence[Story], deliver: DeliverText) -> None:
        """Read what the texts of stories are compared by, with one request; otherwise as `read_all`."""

        async def deliver_texts(read: PagesRead) -> None:
            for story, result in read.others:
                deliver(story, cast("TextResult", result))

        await self._read_some(COMPARE, StoryColumns.of(stories), [None] * len(stories), deliver_texts)

    async def _read_some(
        self, operation: str, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver
    ) -> None:
        """Carry out an operation on pages by one process."""
        named = [title is None for title in stories.titles]  # by its page, where the listing does not name it
        request = Request(operation, self._list_paths(stories), etags, named)
        subjects = stories.ids if operation == FINGERPRINT else [None] * len(stories)
        failed, left = dict[int, NeardupError](), len(stories)
        await self.concurrency.enter(left)
        try:
            async with aclosing(self._ask(request, subjects)) as parts:
                async for answers in parts:
                    self.concurrency.leave(len(answers.places))
                    left -= len(answers.places)
                    others = answers.others
                    errors = {n: error for n, error in others.items() if isinstance(error, NeardupError)}
                    results = [(stories.story(n), cast("PageResult", others[n])) for n in others if n not in errors]
                    failed |= errors
                    if answers.at or results:
                        await deliver(PagesRead(stories.take(answers.at), _get_pages(answers), results))
        finally:
            self.concurrency.leave(left)
        again = (self._read_again(operation, stories.story(n), etags[n], failed[n], deliver) for n in failed)
        await _run_together(again)

    async def _read_again(
        self, operation: str, story: Story, etag: str | None, error: NeardupError, deliver: Deliver
    ) -> None:
        """Read a page whose first attempt ended with this error."""
        result = await self._read(operation, story, etag, failed=error)
        await deliver(make_results([(story, cast("PageResult", result))]))

    async def read(self, story: Story, etag: str | None, *, alone: bool = False) -> PageResult:
        """Fingerprint a story's page; NotModified where it still has this ETag.

        If `alone`, no other page is in flight meanwhile.
        """
        return cast("PageResult", await self._read(FINGERPRINT, story, etag, alone=alone))

    async def read_text(self, story: Story) -> TextResult:
        return cast("TextResult", await self._read(SHOW, story))

    async def prepare(self, page: bytes) -> TextResult:
        """Find the story's text in a page at hand, which may be as hostile as any other, and prepare it for a check."""
        return cast("TextResult", await self._request_given(CHECK, page))

    async def _request_given(self, operation: str, page: bytes) -> object:
        """Carry out an operation on a page at hand."""
        try:
            return await self._request(Request(operation, [page]), nullcontext)
        except NeardupError as error:
            return make_failure(error)

    async def read_with_text(self, story: Story, page: bytes | None = None) -> tuple[PageResult, str | None]:
        """Fingerprint a story's page, which may be at hand; also returns the story's text, None without a story."""
        result = await self._read(READ, story) if page is None else await self._request_given(READ, page)
        return cast("tuple[PageResult, str | None]", result if isinstance(result, tuple) else (result, None))

    def _take_note(self, answers: Answers) -> None:
        """Take note of what pages took, of those without a story that were rendered, and of repeated requests."""
        for repeat in answers.repeats:
            report_retry("fetch", repeat, "info")
        page_seconds = np.frombuffer(answers.seconds, np.float32).reshape(-1, 3)
        self.concurrency.observe(page_seconds[:, 0].tolist() + answers.fetching)
        for answer in answers.others.values():
            if isinstance(answer, Unreadable) and answer.rendered is not None:
                PAGES_RENDERED.labels(*answer.rendered).inc()
        if len(page_seconds):
            self._unobserved.append(page_seconds)
        if sum(map(len, self._unobserved)) >= OBSERVED_AT_ONCE:
            self._observe()

    def _observe(self) -> None:
        page_seconds, self._unobserved = np.concatenate([np.empty((0, 3)), *self._unobserved]), []
        for histogram, seconds in zip((FETCHING, EXTRACTING, FINGERPRINTING), page_seconds.T.tolist(), strict=True):
            observe_all(histogram, seconds)

    def _list_paths(self, stories: StoryColumns) -> list[str]:
        """The pages, as reader processes are asked for them."""
        paths = make_paths(self._content, stories)
        if min(stories.ids) >= 0:
            return paths
        return [f"{REFERENCE}{path}" if is_work(n) else path for n, path in zip(stories.ids, paths, strict=True)]

    async def _read(
        self,
        operation: str,
        story: Story,
        etag: str | None = None,
        *,
        alone: bool = False,
        failed: NeardupError | None = None,
    ) -> object:
        """Carry out an operation on a story's page; an error that concerns this page alone is returned as a failure.

        `failed` is the error of the first attempt, if that was made.
        """
        turn = self.concurrency.ask_alone if alone else self.concurrency.ask_together
        request = Request(operation, self._list_paths(StoryColumns.of([story])), [etag], [story.title is None])
        try:
            return await self._request(request, turn, story, failed)
        except NeardupError as error:
            return make_failure(error)

    async def _request(
        self,
        request: Request,
        turn: Callable[[], AbstractAsyncContextManager[None]],
        story: Story | None = None,
        failed: NeardupError | None = None,
    ) -> object:
        """Send a request for one page until it is answered; a process's death counts against the page it computed.

        A page that exceeds its budget, or over which STRIKES processes died, is read once more without its markup.

        Raises the error of the last attempt.
        """
        strikes, (story_id, shown) = 0, (None, None) if story is None else (story.id, story.shown)
        subject = story_id if request.operation == FINGERPRINT else None

        async def attempt() -> object:
            nonlocal failed
            if failed is not None:
                error, failed = failed, None
                raise error
            async with turn():
                return await self._answer_to(request, subject)

        while True:
            try:
                return await retry_call("fetch", attempt, story=shown)
            except ReaderDied as death:
                strikes += death.computing
                if strikes > STRIKES:
                    return ReadFailed(Dead.QUARANTINED, f"{strikes} reader processes died computing this page")
                if strikes == STRIKES:
                    request = request._replace(parsed=False)
                RETRIES.labels("fetch", "crashed").inc()
            except OverBudget as error:
                log.warning("a page exceeds its budget", story=shown, budget=error.resource, parsed=request.parsed)
                if not request.parsed:
                    raise
                request = request._replace(parsed=False)

    async def _answer_to(self, request: Request, subject: int | None) -> object:
        """The answer to a request for one page; one that is an error is raised."""
        async with aclosing(self._ask(request, [subject])) as parts:
            answers = await anext(parts)
        if answers.at:
            return _get_pages(answers).page(0)
        [answer] = answers.others.values()
        if isinstance(answer, NeardupError):
            raise answer
        return answer

    async def _ask(self, request: Request, subjects: Sequence[int | None]) -> AsyncGenerator[Answers]:
        """Send a request to the least busy process; yields answers until each page has one, which may be an error."""
        try:
            connection = await self._choose_least_busy()
        except NeardupError as error:
            yield Answers.of_errors(dict.fromkeys(range(len(subjects)), error))
            return
        window, share = self.concurrency.window, max(self.concurrency.limit // self._processes, 1)
        async for answers in connection.ask(request._replace(most=share), subjects):
            found = Answers.of_errors(answers) if isinstance(answers, Failures) else answers
            for other in found.others.values():
                if isinstance(other, Transient) and other.reason == "slow_down":
                    self.concurrency.halve(window)
            self._take_note(found)
            yield found

    async def _choose_least_busy(self) -> ReaderConnection:
        """The process with the fewest pages under way.  Waits for a start only if no process runs.  Raises Fatal."""
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
        self._observe()
        tasks = [task for task in (self._starting, self._watchdog) if task is not None]
        self._starting = self._watchdog = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        started, self._started = self._started, []
        await end_readers(started)


async def _run_together(tasks: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run tasks at the same time.  Raises the first error, once the others are cancelled."""
    running = [asyncio.create_task(task) for task in tasks]
    try:
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _get_pages(answers: Answers) -> PackedPages:
    """The fingerprinted pages among answers; those that were rendered are counted."""
    pages = PackedPages.unpack(answers.records)
    for rendering, count in Counter(pages.rendered).items():
        PAGES_RENDERED.labels(*rendering).inc(count)
    return pages


async def start_readers(settings: Settings, size: int) -> list[ReaderConnection]:
    """Start `size` processes, and wait until each is ready or has ended; returns those that are ready, at least one.

    Raises Transient if none can be started, Fatal if the program was replaced.
    """
    connections: list[ReaderConnection] = []
    try:
        servers = [await _begin_start(settings, connections) for _ in range(size)]
        await asyncio.gather(*map(_wait_until_started, connections, servers))
        if all(connection.ended for connection in connections):
            raise Transient("a reader process ended before it was ready; the reason it gave is above", "crashed")
    except BaseException:  # a cancelled start must not leave processes behind
        await end_readers(connections)
        raise
    return [connection for connection in connections if not connection.ended]


async def _begin_start(settings: Settings, connections: list[ReaderConnection]) -> int:
    """Begin to start a process, and add the connection to `connections`; returns the id of the fork server."""
    pool_end, reader_end = socket.socketpair()
    descriptor = create_record()
    try:
        with reader_end:
            server = fork_reader(reader_end.fileno(), descriptor, list_modules(settings.contents))
        record = Record(descriptor)
    except BaseException:
        pool_end.close()
        raise
    finally:
        os.close(descriptor)
    connections.append(await connect_reader(pool_end, record, fingerprint_version.version(), settings))
    return server


async def _wait_until_started(connection: ReaderConnection, server: int) -> None:
    """Wait until a process is ready or has ended.  Kills it, or the fork server before it, if that stands still."""
    stillness = Stillness(server)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(START_CHECK_SECONDS):
                await connection.wait_until_started()
                return
        if connection.pid not in {None, stillness.pid}:
            stillness = Stillness(connection.pid)
        with suppress(OSError):  # the process has just ended
            if stillness.lasts():
                os.kill(stillness.pid, signal.SIGKILL)
                log.warning("a reader process stood still at its start", seconds=round(stillness.seconds))


async def end_readers(connections: Sequence[ReaderConnection]) -> None:
    """Close the connections, which ends the processes, and kill those that still run after GRACE_SECONDS."""
    running = [connection.pid for connection in connections if not connection.ended]
    for connection in connections:
        connection.close()
    if running:
        await asyncio.to_thread(_wait_or_kill, [pid for pid in running if pid is not None])


def _wait_or_kill(pids: Iterable[int]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    with ExitStack() as stack:
        for pid in pids:
            with suppress(ProcessLookupError):
                process = os.pidfd_open(pid)
                stack.callback(os.close, process)
                ends = select.poll()  # select() takes no descriptor above 1,023
                ends.register(process, select.POLLIN)
                if not ends.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    ends.poll()
