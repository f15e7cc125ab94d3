"""A pool of reader processes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import cast

import structlog

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.page import PageFingerprinted
from neardup.core.text.html import Extraction
from neardup.errors import Fatal, NeardupError, OverBudget, ReaderDied
from neardup.pages.adaptive_limit import AdaptiveLimit
from neardup.pages.reader_process import FINGERPRINT, SHINGLE, SPLIT, Answer, Greeting, Request, Seconds
from neardup.pages.reader_rpc import ReaderConnection, connect_reader
from neardup.pages.results import PageResult, ReadFailed, ShingledResult, TextResult, failure_of
from neardup.pages.store import location_of, path_of
from neardup.pages.watchdog import CHECK_SECONDS, Record, new_record
from neardup.records import Dead, Story
from neardup.retry import retried
from neardup.telemetry.metrics import RETRIES, STAGE_SECONDS

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCHING, EXTRACTING, FINGERPRINTING = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
STRIKES = 2  # a page is given up when so many processes died while they computed it: one may die of something else
GRACE_SECONDS = 1.0  # for a process to end by itself: native code must return to the interpreter first
READER_ENVIRONMENT = {
    # no threads, which do not mix with fork; large blocks that are freed leave the memory that the watchdog measures
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000",
}

OpenReaderPool = Callable[[], "ReaderPool"]  # raises Fatal for a store that does not exist
RecordInFlight = Callable[[int], AbstractContextManager[None]]  # a story's id -> a context that records it as in flight

log = structlog.get_logger()


def _record_nothing(_: int) -> AbstractContextManager[None]:
    return nullcontext()


class ReaderPool:
    """Reads up to `most` pages at a time; `concurrency` adapts the number to the store.

    The reader processes start with the first page.  An error that concerns one page becomes a result; an error that
    is raised ends the whole run: Fatal if no process can read pages, or if the store cannot be used at all.
    """

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = AdaptiveLimit(most)
        self.computing_seconds = 0.0  # spent on extracting and fingerprinting, for all pages together
        self._content = content
        self._extraction = extraction
        self._processes = min(PROCESSES, most)
        self._groups: list[_Group] = []
        self._starting_or_closing = asyncio.Lock()
        self._watchdog: asyncio.Task[None] | None = None

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the running processes, as of their last answers."""
        return sum(connection.cpu_seconds for connection in self._connections)

    @property
    def group_ids(self) -> list[int]:
        """The ids of the readers' process groups."""
        return [group.first.pid for group in self._groups]

    @property
    def _connections(self) -> list[ReaderConnection]:
        return [connection for group in self._groups for connection in group.connections if not connection.ended]

    async def _replace_ended(self) -> None:
        """Start as many processes as are missing: all at first, later those that have ended."""
        async with self._starting_or_closing:
            for group in [group for group in self._groups if all(one.ended for one in group.connections)]:
                await group.end()
                self._groups.remove(group)
            if missing := self._processes - len(self._connections):
                self._groups.append(await _start_group(self._content, self._extraction, missing))
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
        return location_of(self._content, story)

    async def read(
        self, story: Story, etag: str | None, *, alone: bool = False, record: RecordInFlight = _record_nothing
    ) -> PageResult:
        """Fingerprint a story's page; NotModified where it still has this ETag.

        `record` keeps the story on record while its page is in flight; if `alone`, no other page is in flight then.
        """
        result, seconds = await self._read(FINGERPRINT, story, etag, alone=alone, record=record)
        if isinstance(result, PageFingerprinted):
            assert seconds is not None
            self._observe(seconds)
        return cast("PageResult", result)

    async def shingled(self, story: Story) -> ShingledResult:
        """Read a story's text, in the form in which texts are compared."""
        result, _ = await self._read(SHINGLE, story)
        return cast("ShingledResult", result)

    async def text(self, story: Story) -> TextResult:
        """Read a story's text and its normalised words."""
        result, _ = await self._read(SPLIT, story)
        return cast("TextResult", result)

    def _observe(self, seconds: Seconds) -> None:
        fetching, extracting, fingerprinting = seconds
        FETCHING.observe(fetching)
        EXTRACTING.observe(extracting)
        FINGERPRINTING.observe(fingerprinting)
        self.computing_seconds += extracting + fingerprinting

    async def _read(
        self,
        operation: str,
        story: Story,
        etag: str | None = None,
        *,
        alone: bool = False,
        record: RecordInFlight = _record_nothing,
    ) -> Answer:
        """Carry out an operation on a story's page; an error that concerns this page alone is returned as a failure."""
        path = self.path_of(story)
        try:
            return await self._request((operation, path, etag), story, alone=alone, record=record)
        except NeardupError as error:
            if isinstance(error, OverBudget):
                log.warning("a page exceeds its budget", page=path, budget=error.resource)
            return failure_of(error), None

    async def _request(self, request: Request, story: Story, *, alone: bool, record: RecordInFlight) -> Answer:
        """Send a request until it is answered; the death of a process counts against the page that it was computing."""
        strikes = 0

        async def attempt() -> Answer:
            async with self.concurrency.alone() if alone else self.concurrency.slot():
                with record(story.id):
                    answer: Answer = await (await self._least_busy()).ask(request)
                    return answer

        while True:
            try:
                return await retried("fetch", attempt, story=story.id)
            except ReaderDied as death:
                strikes += death.computing
                if strikes == STRIKES:
                    return ReadFailed(Dead.QUARANTINED, f"{strikes} reader processes died computing this page"), None
                RETRIES.labels("fetch", "crashed").inc()

    async def _least_busy(self) -> ReaderConnection:
        connections = self._connections
        if len(connections) < self._processes:
            await self._replace_ended()
            connections = self._connections or self._groups[-1].connections  # all ended: `ask` raises the reason
        return min(connections, key=lambda connection: connection.under_way)

    async def aclose(self) -> None:
        """End the processes; requests under way fail.  A later request starts new processes."""
        async with self._starting_or_closing:
            if self._watchdog is not None:
                self._watchdog.cancel()
                self._watchdog = None
            groups, self._groups = self._groups, []
            await asyncio.gather(*(group.end() for group in groups))


@dataclass(frozen=True, slots=True)
class _Group:
    """Processes forked from the first of them once it was ready, so that they share most of their memory."""

    first: subprocess.Popen[bytes]
    connections: list[ReaderConnection]

    async def end(self) -> None:
        """Close the connections, which ends the processes, and kill those that still run after GRACE_SECONDS."""
        for connection in self.connections:
            connection.close()
        await asyncio.to_thread(self._wait_or_kill)

    def _wait_or_kill(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.first.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)
        self.first.wait()


def _reason_to_refuse(greeting: Greeting) -> Fatal | None:
    """Why a process with this greeting cannot be used, or None."""
    version, compiled = greeting
    if version != fingerprint_version.version():
        return Fatal("the program was replaced while it ran; start it again")
    if not compiled:
        log.warning("this system forbids code compiled at run time: fingerprints take several times as long")
    return None


async def _start_group(content: Content, extraction: Extraction, size: int) -> _Group:
    """Start `size` processes.  Raises Fatal if the system refuses to start one."""
    with ExitStack() as stack:
        sockets = [socket.socketpair() for _ in range(size)]
        # the descriptors that each process inherits: of its socket, and of its record
        inherited = [(stack.enter_context(reader_end).fileno(), new_record()) for _, reader_end in sockets]
        for _, record_fd in inherited:
            stack.callback(os.close, record_fd)
        # not -m: it would pickle the classes of that module under the name __main__
        # -P: import nothing from the working directory
        command = [sys.executable, "-P", "-c", f"from neardup.pages.reader_process import main; main({inherited})"]
        try:
            first = subprocess.Popen(  # noqa: ASYNC220, S603 - starts this program, which takes a millisecond
                command,
                pass_fds=[descriptor for pair in inherited for descriptor in pair],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | READER_ENVIRONMENT,
                process_group=0,
            )
        except OSError as error:
            raise Fatal(f"cannot start a reader process: {error.strerror}") from error
        records = [Record(record_fd) for _, record_fd in inherited]
    group = _Group(first, [])
    try:
        for (pool_end, _), record in zip(sockets, records, strict=True):
            connection = await connect_reader(pool_end, record, _reason_to_refuse, (content, extraction))
            group.connections.append(connection)
    except BaseException:  # a cancelled request must not leave processes behind
        await group.end()
        raise
    return group
