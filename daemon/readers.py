"""The processes that read pages, as the pipeline uses them."""

import asyncio
import os
import socket
import subprocess
import sys
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from daemon.concurrency import Concurrency
from daemon.config import Content
from daemon.core.html import Extraction
from daemon.errors import Transient
from daemon.fetch import path_of
from daemon.metrics import STAGE_SECONDS
from daemon.reading import Read, Request
from daemon.records import Story
from daemon.retry import retried

PROCESSES = min(len(os.sched_getaffinity(0)), 2)  # each takes some 130 MB
FETCH, EXTRACT, FINGERPRINT = map(STAGE_SECONDS.labels, ("fetch", "extract", "fingerprint"))


class Readers:
    """Reads pages, at most `most` at a time, as many of them as `concurrency` finds good."""

    def __init__(self, content: Content, extraction: Extraction, most: int) -> None:
        self.concurrency = Concurrency(most)
        self._content = content
        self._setting = (content, extraction)
        self._processes = [_Process(*self._setting) for _ in range(min(PROCESSES, most))]

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in self._processes]

    async def read(self, story: Story, etag: str | None) -> Read | None:
        """A story's page, read; None where it still has this ETag.

        Raises Unreadable, Gone, TooLarge, Forbidden, and Transient when the attempts are used up.
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
            for n, process in enumerate(self._processes):
                if process.ended:
                    self._processes[n] = _Process(*self._setting)
            return await min(self._processes, key=lambda process: process.under_way).ask(path, etag)

    def close(self) -> None:
        """End the processes; what they have under way is lost."""
        for process in self._processes:
            process.close()


class _Process:
    """One process, and what it was asked for."""

    def __init__(self, content: Content, extraction: Extraction) -> None:
        ours, theirs = socket.socketpair()
        # not -m: what that module defines would be sent under the name of __main__
        command = [sys.executable, "-c", f"from daemon.reading import main; main({theirs.fileno()})"]
        self._process = subprocess.Popen(  # noqa: S603 - this program
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
        theirs.close()
        self.pid = self._process.pid
        self._link = Connection(ours.detach())
        self._link.send((content, extraction))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link.fileno(), self._receive)
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: list[Request] = []
        self.ended = False

    @property
    def under_way(self) -> int:
        """Pages that it was asked for and has not answered."""
        return len(self._asked)

    async def ask(self, path: str, etag: str | None) -> Read | None:
        """The page at a path; raises Transient where the process dies of it."""
        number, answer = next(self._numbers), self._loop.create_future()
        self._asked[number] = answer
        self._unsent.append((number, path, etag))
        if len(self._unsent) == 1:
            self._loop.call_soon(self._send)
        read: Read | None = await answer
        return read

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        try:
            self._link.send(unsent)
        except OSError:
            self.close()

    def _receive(self) -> None:
        try:
            while self._link.poll():
                number, answer = self._link.recv()
                waiting = self._asked.pop(number)
                if waiting.done():  # whoever awaited it was cancelled
                    continue
                if isinstance(answer, Exception):
                    waiting.set_exception(answer)
                else:
                    waiting.set_result(answer)
        except (EOFError, OSError):
            self.close()

    def close(self) -> None:
        """Once; whoever waits is told that it died."""
        if self.ended:
            return
        self.ended = True
        self._loop.remove_reader(self._link.fileno())
        self._link.close()
        self._process.kill()
        self._process.wait()
        asked, self._asked = self._asked, {}
        for waiting in asked.values():
            if not waiting.done():
                waiting.set_exception(Transient(f"a reading process ended ({self._process.returncode})", "crashed"))
