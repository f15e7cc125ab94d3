"""The processes that read pages, as the pipeline uses them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass

from daemon.concurrency import Concurrency
from daemon.config import Content
from daemon.core.html import Extraction
from daemon.errors import Fatal
from daemon.fetch import path_of
from daemon.link import Died, Link, linked
from daemon.metrics import RETRIES, STAGE_SECONDS
from daemon.reading import Read
from daemon.records import Story
from daemon.retry import retried

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCH, EXTRACT, FINGERPRINT = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
GRACE_SECONDS = 1.0  # for native code to give the interpreter back
# Arrays are small here; a pool of threads for large ones only takes memory, and is nothing to fork with.
ALONE = {"OPENBLAS_NUM_THREADS": "1"}

Record = Callable[[int], AbstractContextManager[None]]


def _off_the_record(_: int) -> AbstractContextManager[None]:
    return nullcontext()


class Readers:
    """Reads pages, at most `most` at a time, as many of them as `concurrency` finds good."""

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = Concurrency(most)
        self._content = content
        self._setting = (content, extraction)
        self._processes = min(PROCESSES, most)
        self._groups: list[_Group] = []
        self._starting = asyncio.Lock()

    @property
    def cpu_seconds(self) -> float:
        """What the processes have used of the processor, as far as they have told."""
        return sum(link.cpu_seconds for link in self._links)

    @property
    def groups(self) -> list[int]:
        """The ids of the process groups that read."""
        return [group.first.pid for group in self._groups]

    @property
    def _links(self) -> list[Link]:
        return [link for group in self._groups for link in group.links if not link.ended]

    async def _complete(self) -> None:
        """Start processes in the place of those that ended."""
        async with self._starting:
            for group in [group for group in self._groups if all(link.ended for link in group.links)]:
                group.end()
                self._groups.remove(group)
            if missing := self._processes - len(self._links):
                self._groups.append(await _started(*self._setting, missing))

    async def read(
        self, story: Story, etag: str | None, *, alone: bool = False, record: Record = _off_the_record
    ) -> Read | None:
        """A story's page, read, on `record` while it is in flight; None where it still has this ETag.

        A page that was in hand when a process died is read again `alone`, with nothing else in flight.  Raises Died
        where a process dies of that, too; Unreadable, Gone, TooLarge, Forbidden, and Transient when the attempts are
        used up; Fatal where no process can read.
        """
        path = path_of(self._content, story)

        async def ask(alone: bool) -> Read | None:
            async with self.concurrency.alone() if alone else self.concurrency.slot():
                with record(story.id):
                    return await self._ask(path, etag)

        try:
            read = await retried("fetch", lambda: ask(alone), story=story.id)
        except Died:
            if alone:
                raise
            RETRIES.labels("fetch", "crashed").inc()
            read = await retried("fetch", lambda: ask(True), story=story.id)
        if read is not None:
            FETCH.observe(read.fetch)
            EXTRACT.observe(read.extract)
            FINGERPRINT.observe(read.fingerprinting)
        return read

    async def _ask(self, path: str, etag: str | None) -> Read | None:
        links = self._links
        if len(links) < self._processes:
            await self._complete()
            links = self._links or self._groups[-1].links  # which tell why they ended
        return await min(links, key=lambda link: link.under_way).ask(path, etag)

    def close(self) -> None:
        """End the processes; what they have under way is lost."""
        while self._groups:
            self._groups.pop().end()


@dataclass(frozen=True, slots=True)
class _Group:
    """Processes that were started as one, and forked when that was ready: they share most of their memory."""

    first: subprocess.Popen[bytes]
    links: list[Link]

    def end(self) -> None:
        """Close the links, by which they end; kill those that don't."""
        for link in self.links:
            link.close()
        with suppress(subprocess.TimeoutExpired):
            self.first.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)
        self.first.wait()


async def _started(content: Content, extraction: Extraction, size: int) -> _Group:
    """So many processes.  Raises Fatal where the system starts no more."""
    with ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(size)]
        theirs = [stack.enter_context(other).fileno() for _, other in pairs]
        # not -m: what that module defines would be sent under the name of __main__
        # -P: the working directory is nobody's to import from
        command = [sys.executable, "-P", "-c", f"from daemon.reading import main; main({theirs})"]
        try:
            first = subprocess.Popen(  # noqa: ASYNC220, S603 - this program, and it takes a millisecond
                command,
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | ALONE,
                process_group=0,
            )
        except OSError as error:
            raise Fatal(f"no process to read pages can be started: {error.strerror}") from error
    return _Group(first, [await linked(ours, content, extraction) for ours, _ in pairs])
