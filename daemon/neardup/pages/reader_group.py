"""Starts reader processes: a group of them, forked from the first once that is ready, so that they share memory."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.html import Extraction
from neardup.errors import Fatal, Transient
from neardup.pages.reader_process import Greeting
from neardup.pages.reader_rpc import ReaderConnection, connect_reader
from neardup.pages.store import WorkPages
from neardup.pages.watchdog import Record, Stillness, new_record

GRACE_SECONDS = 1.0  # for a process to end by itself: native code must return to the interpreter first
START_CHECK_SECONDS = 1.0
STDERR = 2  # the descriptor; sys.stderr may have been replaced by an object without one
READER_ENVIRONMENT = {
    # no threads, which do not mix with fork; large blocks that are freed leave the memory that the watchdog measures
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "10000000",
}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ReaderGroup:
    """Reader processes that were started together, and the connections to them."""

    first: subprocess.Popen[bytes]
    connections: list[ReaderConnection]

    @property
    def running(self) -> list[ReaderConnection]:
        """The connections to the processes that have not ended."""
        return [connection for connection in self.connections if not connection.ended]

    async def end(self) -> None:
        """Close the connections, which ends the processes, and kill those that still run after GRACE_SECONDS."""
        for connection in self.connections:
            connection.close()
        await asyncio.to_thread(self._wait_or_kill)

    def kill(self) -> None:
        """Kill the processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)

    def _wait_or_kill(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.first.wait(GRACE_SECONDS)
        self.kill()
        self.first.wait()


async def start_group(
    content: Content,
    extraction: Extraction,
    size: int,
    submitted: Path | None = None,
    works: WorkPages | None = None,
) -> ReaderGroup:
    """Start `size` processes, and wait until each is ready or has ended; at least one is ready.

    `submitted` is the folder of the submitted pages, `works` the store of the works.  Raises Transient if none can be
    started, Fatal if the program was replaced.
    """
    with ExitStack() as stack, ExitStack() as unless_started:
        sockets = [socket.socketpair() for _ in range(size)]
        for pool_end, _ in sockets:
            unless_started.enter_context(pool_end)
        # the descriptors that each process inherits: of its socket, and of its record
        inherited = [(stack.enter_context(reader_end).fileno(), new_record()) for _, reader_end in sockets]
        for _, record_fd in inherited:
            stack.callback(os.close, record_fd)
        first = _spawn(inherited)
        unless_started.pop_all()
        records = [Record(record_fd) for _, record_fd in inherited]
    group = ReaderGroup(first, [])
    try:
        for (pool_end, _), record in zip(sockets, records, strict=True):
            settings = content, extraction, submitted, works
            connection = await connect_reader(pool_end, record, _reason_to_refuse, settings)
            group.connections.append(connection)
        await _wait_until_started(group)
        if not group.running:
            raise Transient("a reader process ended before it was ready; the reason it gave is above", "crashed")
    except BaseException:  # a cancelled start must not leave processes behind
        await group.end()
        raise
    return group


def _spawn(inherited: list[tuple[int, int]]) -> subprocess.Popen[bytes]:
    """Start the first process of a group.  Raises Transient if the system refuses."""
    # not -m: it would pickle the classes of that module under the name __main__
    # -P: import nothing from the working directory
    command = [sys.executable, "-P", "-c", f"from neardup.pages.reader_process import main; main({inherited})"]
    try:
        return subprocess.Popen(  # noqa: S603 - this program
            command,
            pass_fds=[descriptor for pair in inherited for descriptor in pair],
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            env=os.environ | READER_ENVIRONMENT,
            process_group=0,
        )
    except OSError as error:
        raise Transient(f"cannot start a reader process: {error.strerror}", "crashed") from error


async def _wait_until_started(group: ReaderGroup) -> None:
    """Wait until each process is ready or has ended.  Kills them if they stand still: the last to start is idle."""
    stillness = Stillness(group.first.pid)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(START_CHECK_SECONDS):
                await asyncio.gather(*(connection.started() for connection in group.connections))
                return
        with suppress(OSError):  # the first process has just ended
            if stillness.lasts():
                group.kill()
                log.warning("reader processes stood still at their start", seconds=round(stillness.seconds))


def _reason_to_refuse(greeting: Greeting) -> Fatal | None:
    """Why a process with this greeting cannot be used, or None."""
    version, compiled = greeting
    if version != fingerprint_version.version():
        return Fatal("the program was replaced while it ran; start it again")
    if not compiled:
        log.warning("this system forbids code compiled at run time: fingerprints take several times as long")
    return None
