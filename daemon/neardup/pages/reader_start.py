"""Starts reader processes, and ends them."""

import asyncio
import os
import select
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress

from neardup.core.fingerprint import version as fingerprint_version
from neardup.errors import Fatal, Transient
from neardup.pages.fork_server import fork_reader
from neardup.pages.reader_process import Greeting, Settings, list_contents
from neardup.pages.reader_rpc import ReaderConnection, connect_reader
from neardup.pages.store import list_modules
from neardup.pages.watchdog import Record, Stillness, create_record
from neardup.telemetry.log import log

GRACE_SECONDS = 1.0  # for a process to end by itself: native code must return to the interpreter first
START_CHECK_SECONDS = 1.0


async def start_readers(settings: Settings, size: int) -> list[ReaderConnection]:
    """Start `size` processes, and wait until each is ready or has ended; returns those that are ready, at least one.

    Raises Transient if none can be started, Fatal if the program was replaced.
    """
    connections: list[ReaderConnection] = []
    try:
        servers = [await _begin(settings, connections) for _ in range(size)]
        await asyncio.gather(*map(_wait_until_started, connections, servers))
        if all(connection.ended for connection in connections):
            raise Transient("a reader process ended before it was ready; the reason it gave is above", "crashed")
    except BaseException:  # a cancelled start must not leave processes behind
        await end_readers(connections)
        raise
    return [connection for connection in connections if not connection.ended]


async def _begin(settings: Settings, connections: list[ReaderConnection]) -> int:
    """Begin to start a process, and add the connection to `connections`; returns the id of the fork server."""
    pool_end, reader_end = socket.socketpair()
    descriptor = create_record()
    try:
        with reader_end:
            server = fork_reader(reader_end.fileno(), descriptor, list_modules(list_contents(settings)))
        record = Record(descriptor)
    except BaseException:
        pool_end.close()
        raise
    finally:
        os.close(descriptor)
    connections.append(await connect_reader(pool_end, record, _find_refusal, settings))
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


def _find_refusal(greeting: Greeting) -> Fatal | None:
    """Why a process with this greeting cannot be used, or None."""
    if greeting != fingerprint_version.version():
        return Fatal("the program was replaced while it ran; start it again")
    return None
