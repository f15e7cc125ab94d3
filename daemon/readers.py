"""The processes that read pages, as the pipeline uses them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

import structlog

from daemon.concurrency import Concurrency
from daemon.config import Content
from daemon.core import golden
from daemon.core.html import Extraction
from daemon.errors import Fatal, NeardupError, Transient
from daemon.fetch import path_of
from daemon.metrics import STAGE_SECONDS
from daemon.reading import Read, Request
from daemon.records import Story
from daemon.retry import retried

PROCESSES = min(len(os.sched_getaffinity(0)), 2)
FETCH, EXTRACT, FINGERPRINT = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))
GRACE_SECONDS = 1.0  # for native code to give the interpreter back
# Arrays are small here; a pool of threads for large ones only takes memory, and is nothing to fork with.
ALONE = {"OPENBLAS_NUM_THREADS": "1"}

log = structlog.get_logger()


class Readers:
    """Reads pages, at most `most` at a time, as many of them as `concurrency` finds good."""

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = Concurrency(most)
        self._content = content
        self._setting = (content, extraction)
        self._processes = min(PROCESSES, most)
        self._groups: list[_Group] = []
        self._complete()

    @property
    def cpu_seconds(self) -> float:
        """What the processes have used of the processor, as far as they have told."""
        return sum(link.cpu_seconds for link in self._links)

    @property
    def groups(self) -> list[int]:
        """The ids of the process groups that read."""
        return [group.id for group in self._groups]

    @property
    def _links(self) -> list["_Link"]:
        return [link for group in self._groups for link in group.links if not link.ended]

    def _complete(self) -> None:
        """Start processes in the place of those that ended."""
        for group in [group for group in self._groups if all(link.ended for link in group.links)]:
            group.end()
            self._groups.remove(group)
        if missing := self._processes - len(self._links):
            self._groups.append(_Group(*self._setting, missing))

    async def read(self, story: Story, etag: str | None) -> Read | None:
        """A story's page, read; None where it still has this ETag.

        Raises Unreadable, Gone, TooLarge, Forbidden, and Transient when the attempts are used up; Fatal where no
        process can read.
        """
        path = path_of(self._content, story)
        read = await retried("fetch", lambda: self._ask(path, etag))
        if read is not None:
            FETCH.observe(read.fetch)
            EXTRACT.observe(read.extract)
            FINGERPRINT.observe(read.fingerprinting)
        return read

    async def _ask(self, path: str, etag: str | None) -> Read | None:
        async with self.concurrency.slot():
            links = self._links
            if len(links) < self._processes:
                self._complete()
                links = self._links
            return await min(links, key=lambda link: link.under_way).ask(path, etag)

    def close(self) -> None:
        """End the processes; what they have under way is lost."""
        while self._groups:
            self._groups.pop().end()


class _Group:
    """Processes that were started as one, and forked when that was ready: they share most of their memory.

    Raises Fatal where the system starts no more.
    """

    def __init__(self, content: Content, extraction: Extraction, size: int) -> None:
        with ExitStack() as stack:
            pairs = [socket.socketpair() for _ in range(size)]
            theirs = [stack.enter_context(other).fileno() for _, other in pairs]
            # not -m: what that module defines would be sent under the name of __main__
            # -P: the working directory is nobody's to import from
            command = [sys.executable, "-P", "-c", f"from daemon.reading import main; main({theirs})"]
            try:
                self._first = subprocess.Popen(  # noqa: S603 - this program
                    command,
                    pass_fds=theirs,
                    stdin=subprocess.DEVNULL,
                    stdout=sys.stderr,
                    env=os.environ | ALONE,
                    process_group=0,
                )
            except OSError as error:
                raise Fatal(f"no process to read pages can be started: {error.strerror}") from error
        self.id = self._first.pid
        self.links = [_Link(ours, content, extraction) for ours, _ in pairs]

    def end(self) -> None:
        """Close the links, by which they end; kill those that don't."""
        for link in self.links:
            link.close()
        with suppress(subprocess.TimeoutExpired):
            self._first.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.id, signal.SIGKILL)
        self._first.wait()


class _Link:
    """The link to one process, and what it was asked for."""

    def __init__(self, ours: socket.socket, content: Content, extraction: Extraction) -> None:
        self._link = Connection(ours.detach())
        self._link.send((content, extraction))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link.fileno(), self._receive)
        os.set_blocking(self._link.fileno(), True)  # the loop has changed that, and Connection cannot live with it
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: list[Request] = []
        self._version: str | None = None  # of the fingerprints that are made there, told when all is ready
        self.cpu_seconds = 0.0
        self.ended = False

    @property
    def under_way(self) -> int:
        """Pages that it was asked for and has not answered."""
        return len(self._asked)

    async def ask(self, path: str, etag: str | None) -> Read | None:
        """The page at a path; raises Transient where the process dies of it, Fatal where it never lived."""
        number, answer = next(self._numbers), self._loop.create_future()
        self._asked[number] = answer
        self._unsent.append((number, path, etag))
        if len(self._unsent) == 1:
            self._loop.call_soon(self._send)
        read: Read | None = await answer
        return read

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        with suppress(OSError):  # it has ended, which is still to be read, behind what it answered before
            self._link.send(unsent)

    def _receive(self) -> None:
        try:
            while not self.ended and self._link.poll():
                self._take(self._link.recv())
        except (EOFError, OSError):
            self.close()
        except Exception:
            log.exception("a reading process gave an answer that cannot be read")
            self.close()

    def _take(self, message: Any) -> None:
        if self._version is None:
            self._version, compiled = message
            if self._version != golden.version():
                self.close()
            if not compiled:
                log.warning("this system forbids code compiled here: fingerprints take several times as long")
            return
        number, answer, self.cpu_seconds = message
        waiting = self._asked.pop(number)
        if waiting.done():  # whoever awaited it was cancelled
            return
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def close(self) -> None:
        """Once; whoever waits is told that it died, or never came to life."""
        if self.ended:
            return
        self.ended = True
        self._loop.remove_reader(self._link.fileno())
        self._link.close()
        asked, self._asked = self._asked, {}
        for waiting in asked.values():
            if not waiting.done():
                waiting.set_exception(self._death())

    def _death(self) -> NeardupError:
        match self._version:
            case None:
                return Fatal("a reading process did not start; what it said is above")
            case version if version != golden.version():
                return Fatal("the program was replaced while it ran; start it again")
        return Transient("a reading process ended", "crashed")
