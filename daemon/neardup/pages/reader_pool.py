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
from typing import Any

from neardup.config import Content
from neardup.core.text.html import Extraction
from neardup.core.verify.scores import Shingled
from neardup.errors import Crashed, Fatal, Interrupted
from neardup.pages.adaptive_limit import Concurrency
from neardup.pages.reader_process import Read, page_shingled, page_story, read_page
from neardup.pages.reader_rpc import Link, linked
from neardup.pages.store import path_of
from neardup.pages.watchdog import LOOK_SECONDS, Record, new_record
from neardup.records import Story
from neardup.retry import retried
from neardup.telemetry.metrics import RETRIES, STAGE_SECONDS

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCH, EXTRACT, FINGERPRINT = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
STRIKES = 2  # processes that die over a page, before it is given up: the first may have died of something else
GRACE_SECONDS = 1.0  # for native code to give the interpreter back
# Arrays are small here; a pool of threads for large ones only takes memory, and is nothing to fork with.
# And what a large page took is given back, not kept for another: memory is how a page is judged.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_TRIM_THRESHOLD_": "10000000"}

OnRecord = Callable[[int], AbstractContextManager[None]]


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
        self._watching: asyncio.Task[None] | None = None

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
                self._watching = self._watching or asyncio.create_task(self._watch(), name="budgets")

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for link in self._links:
                link.look()

    async def read(
        self, story: Story, etag: str | None, *, alone: bool = False, record: OnRecord = _off_the_record
    ) -> Read | None:
        """A story's page, read, on `record` while it is in flight; None where it still has this ETag.

        A page is read `alone` when nothing else may be in flight.  Raises Unreadable, Gone, TooLarge, Forbidden,
        Crashed, and Transient when the attempts are used up; Fatal where no process can read.
        """
        read: Read | None = await self._read(read_page.__name__, story, etag, alone=alone, record=record)
        if read is not None:
            FETCH.observe(read.fetch)
            EXTRACT.observe(read.extract)
            FINGERPRINT.observe(read.fingerprinting)
        return read

    async def shingled(self, story: Story) -> tuple[bytes, Shingled]:
        """The hash of a story's text, and the text to be compared.  Raises as `read` does."""
        told: tuple[bytes, Shingled] = await self._read(page_shingled.__name__, story)
        return told

    async def story(self, story: Story) -> tuple[str, list[bytes]]:
        """A story's text, and the words of that.  Raises as `read` does."""
        told: tuple[str, list[bytes]] = await self._read(page_story.__name__, story)
        return told

    async def _read(
        self,
        work: str,
        story: Story,
        etag: str | None = None,
        *,
        alone: bool = False,
        record: OnRecord = _off_the_record,
    ) -> Any:
        """What `work` gives of a story's page; the end of a process is counted against the page it was over."""
        path, strikes = path_of(self._content, story), 0

        async def ask() -> Any:
            async with self.concurrency.alone() if alone else self.concurrency.slot():
                with record(story.id):
                    return await self._ask(work, path, etag)

        while True:
            try:
                return await retried("fetch", ask, story=story.id)
            except Interrupted as interrupted:
                strikes += interrupted.over_it
                if strikes == STRIKES:
                    raise Crashed(f"{strikes} reading processes died of it") from None
                RETRIES.labels("fetch", "crashed").inc()

    async def _ask(self, work: str, path: str, etag: str | None) -> Any:
        links = self._links
        if len(links) < self._processes:
            await self._complete()
            links = self._links or self._groups[-1].links  # which tell why they ended
        return await min(links, key=lambda link: link.under_way).ask(work, path, etag)

    def close(self) -> None:
        """End the processes; what they have under way is lost."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
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
        theirs = [(stack.enter_context(other).fileno(), new_record()) for _, other in pairs]
        for _, record in theirs:
            stack.callback(os.close, record)
        # not -m: what that module defines would be sent under the name of __main__
        # -P: the working directory is nobody's to import from
        command = [sys.executable, "-P", "-c", f"from neardup.pages.reader_process import main; main({theirs})"]
        try:
            first = subprocess.Popen(  # noqa: ASYNC220, S603 - this program, and it takes a millisecond
                command,
                pass_fds=[descriptor for link in theirs for descriptor in link],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | ALONE,
                process_group=0,
            )
        except OSError as error:
            raise Fatal(f"no process to read pages can be started: {error.strerror}") from error
        records = [Record(record) for _, record in theirs]
    links = [await linked(ours, record, content, extraction) for (ours, _), record in zip(pairs, records, strict=True)]
    return _Group(first, links)
