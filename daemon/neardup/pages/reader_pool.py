"""A pool of processes that read pages, and what it yields of each."""

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
from neardup.pages.reader_process import FINGERPRINT, SHINGLE, SPLIT, Answer, Greeting, Seconds
from neardup.pages.reader_rpc import ReaderConnection, connect_reader
from neardup.pages.results import PageResult, ReadFailed, ShingledResult, TextResult, failure_of
from neardup.pages.store import path_of
from neardup.pages.watchdog import LOOK_SECONDS, Record, new_record
from neardup.records import Dead, Story
from neardup.retry import retried
from neardup.telemetry.metrics import RETRIES, STAGE_SECONDS

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCHING, EXTRACTING, FINGERPRINTING = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
STRIKES = 2  # processes that die over a page, before it is given up: the first may have died of another cause
GRACE_SECONDS = 1.0  # for native code to give the interpreter back
# Arrays are small here; a pool of threads for large ones only takes memory, and is nothing to fork with.
# And what a large page took is given back, not kept for another: memory is how a page is judged.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "10000000"}

OnRecord = Callable[[int], AbstractContextManager[None]]

log = structlog.get_logger()


def _not_recorded(_: int) -> AbstractContextManager[None]:
    return nullcontext()


class ReaderPool:
    """Reads pages, at most `most` at a time, as many of them as `concurrency` finds good.

    Its processes start with the first page.  What is of one page alone is a result; an error that it raises ends the
    whole run: Fatal where no process can read, or where the store refuses everything.
    """

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = AdaptiveLimit(most)
        self.computing_seconds = 0.0  # that extracting and fingerprinting took, of all pages together
        self._content = content
        self._setting = (content, extraction)
        self._processes = min(PROCESSES, most)
        self._groups: list[_Group] = []
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None

    @property
    def cpu_seconds(self) -> float:
        """What the processes have used of the processor, by their last answers."""
        return sum(connection.cpu_seconds for connection in self._connections)

    @property
    def groups(self) -> list[int]:
        """The ids of the process groups that read."""
        return [group.first.pid for group in self._groups]

    @property
    def _connections(self) -> list[ReaderConnection]:
        return [one for group in self._groups for one in group.connections if not one.ended]

    async def _complete(self) -> None:
        """Start processes in the place of those that ended."""
        async with self._starting:
            for group in [group for group in self._groups if all(one.ended for one in group.connections)]:
                group.end()
                self._groups.remove(group)
            if missing := self._processes - len(self._connections):
                self._groups.append(await _started(*self._setting, missing))
                self._watching = self._watching or asyncio.create_task(self._watch(), name="budgets")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for connection in self._connections:
                connection.enforce_budget()

    def path_of(self, story: Story) -> str:
        """Where a story's page is, below content.url."""
        return path_of(self._content, story)

    async def read(
        self, story: Story, etag: str | None, *, alone: bool = False, record: OnRecord = _not_recorded
    ) -> PageResult:
        """A story's page, fingerprinted, on `record` while it is in flight; NotModified where it still has this ETag.

        A page is read `alone` when nothing else may be in flight.
        """
        result, seconds = await self._read(FINGERPRINT, story, etag, alone=alone, record=record)
        if isinstance(result, PageFingerprinted):
            assert seconds is not None
            self._observe(seconds)
        return cast("PageResult", result)

    async def shingled(self, story: Story) -> ShingledResult:
        """A story's text as it is compared with others."""
        result, _ = await self._read(SHINGLE, story)
        return cast("ShingledResult", result)

    async def text(self, story: Story) -> TextResult:
        """A story's text, and its words."""
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
        work: str,
        story: Story,
        etag: str | None = None,
        *,
        alone: bool = False,
        record: OnRecord = _not_recorded,
    ) -> Answer:
        """What `work` gives of a story's page, or the failure that an error of this page alone is."""
        path = self.path_of(story)
        try:
            return await self._answer((work, path, etag), story, alone=alone, record=record)
        except NeardupError as error:
            if isinstance(error, OverBudget):
                log.warning("a page takes too much to be read", page=path, over=error.resource)
            return failure_of(error), None

    async def _answer(
        self, request: tuple[str, str, str | None], story: Story, *, alone: bool, record: OnRecord
    ) -> Answer:
        """The answer to a request; the end of a process is counted against the page that it was computing."""
        strikes = 0

        async def ask() -> Answer:
            async with self.concurrency.alone() if alone else self.concurrency.slot():
                with record(story.id):
                    answer: Answer = await (await self._connection()).ask(request)
                    return answer

        while True:
            try:
                return await retried("fetch", ask, story=story.id)
            except ReaderDied as death:
                strikes += death.computing
                if strikes == STRIKES:
                    return ReadFailed(Dead.QUARANTINED, f"{strikes} reader processes died of it"), None
                RETRIES.labels("fetch", "crashed").inc()

    async def _connection(self) -> ReaderConnection:
        """The one with the fewest requests under way."""
        connections = self._connections
        if len(connections) < self._processes:
            await self._complete()
            connections = self._connections or self._groups[-1].connections  # which say why they ended
        return min(connections, key=lambda connection: connection.under_way)

    def close(self) -> None:
        """End the processes; what they have under way is lost."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        while self._groups:
            self._groups.pop().end()


OpenReaderPool = Callable[[], ReaderPool]  # raises Fatal for a store that is not there


@dataclass(frozen=True, slots=True)
class _Group:
    """Processes that were started as one, and forked when that was ready: they share most of their memory."""

    first: subprocess.Popen[bytes]
    connections: list[ReaderConnection]

    def end(self) -> None:
        """Close the connections, by which the processes end; kill those that don't."""
        for connection in self.connections:
            connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.first.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)
        self.first.wait()


def _refusal(greeting: Greeting) -> Fatal | None:
    """Why a process with this greeting is of no use, or None."""
    version, compiled = greeting
    if version != fingerprint_version.version():
        return Fatal("the program was replaced while it ran; start it again")
    if not compiled:
        log.warning("this system forbids code compiled here: fingerprints take several times as long")
    return None


async def _started(content: Content, extraction: Extraction, size: int) -> _Group:
    """So many processes.  Raises Fatal where the system starts no more."""
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(size)]
        theirs = [(stack.enter_context(other).fileno(), new_record()) for _, other in pairs]
        for _, record in theirs:
            stack.callback(os.close, record)
        # not -m: what that module defines would be sent under the name of __main__
        # -P: nothing is imported from the working directory
        command = [sys.executable, "-P", "-c", f"from neardup.pages.reader_process import main; main({theirs})"]
        try:
            first = subprocess.Popen(  # noqa: ASYNC220, S603 - this program, and it takes a millisecond
                command,
                pass_fds=[descriptor for owner in theirs for descriptor in owner],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | ALONE,
                process_group=0,
            )
        except OSError as error:
            raise Fatal(f"no process to read pages can be started: {error.strerror}") from error
        records = [Record(record) for _, record in theirs]
    setting = content, extraction
    connections = [
        await connect_reader(ours, record, _refusal, setting) for (ours, _), record in zip(pairs, records, strict=True)
    ]
    return _Group(first, connections)
