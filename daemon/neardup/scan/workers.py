"""Processes that are forked from this one, and carry out operations with what it has loaded.

They are forked before this process has threads and an event loop.  A process that dies is not replaced: the caller of
its operation fails.
"""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from neardup.pages.reader_pool import PROCESSES
from neardup.pages.watchdog import CPU_SECONDS, MOST_MEMORY_BYTES
from neardup.process import collect_seldom

DATA_PAGES = 5  # the place of the number in /proc/self/statm

Operations = Mapping[str, Callable[..., Any]]


class WorkerDied(Exception):
    """The process died that carried out an operation, or none is left to do so."""


class Workers:
    """Forked processes, seen from their owner."""

    def __init__(self, connections: list[Connection]) -> None:
        self._living = list(connections)
        self._idle: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._idle.put_nowait(connection)

    def __len__(self) -> int:
        return len(self._living)

    async def run(self, operation: str, *arguments: object) -> Any:
        """Carry out an operation in a process that is idle.  Raises WorkerDied, and what the operation raises."""
        connection = await self._idle.get()
        try:
            return await self._ask(connection, operation, arguments)
        finally:
            self._idle.put_nowait(connection)  # of one that died, too: who waits for it sees that

    async def run_everywhere(self, operation: str, *arguments: object) -> None:
        """Carry out an operation in each process that is left, while none has another."""
        requests = (self._ask(connection, operation, arguments) for connection in self._living)
        for result in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, WorkerDied):
                raise result

    async def _ask(self, connection: Connection, operation: str, arguments: tuple[object, ...]) -> Any:
        def ask() -> Any:
            connection.send((operation, arguments))
            return connection.recv()

        try:
            result, error = await asyncio.to_thread(ask)
        except (EOFError, OSError) as death:
            if connection in self._living:
                self._living.remove(connection)
            raise WorkerDied from death
        if error is not None:
            raise error
        return result


@contextmanager
def fork_workers(operations_of: Callable[[int], Operations]) -> Iterator[Workers]:
    """PROCESSES that have the operations of their numbers, from 0; they end with the block, or with this process."""
    collect_seldom()
    pids, owned = list[int](), list[Connection]()
    try:
        for number in range(PROCESSES):
            ours, theirs = socket.socketpair()
            owned.append(Connection(ours.detach()))
            if (pid := os.fork()) == 0:
                for connection in owned:
                    connection.close()  # else no process would see the end of its owner
                _serve(Connection(theirs.detach()), operations_of(number))
            theirs.close()
            pids.append(pid)
        yield Workers(owned)
    finally:
        for connection in owned:
            connection.close()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _serve(owner: Connection, operations: Operations) -> NoReturn:
    """Carry out operations until the owner has ended; then end this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner ends this process
    _limit_memory()
    with suppress(EOFError, OSError):
        while True:
            name, arguments = owner.recv()
            owner.send(_carry_out(operations[name], arguments))
    os._exit(0)


def _carry_out(operation: Callable[..., object], arguments: tuple[object, ...]) -> tuple[object, Exception | None]:
    try:
        return operation(*arguments), None
    except MemoryError:
        os._exit(1)  # the rest of the process cannot be relied on
    except Exception as error:  # noqa: BLE001 - it is raised in the owner
        return None, error


def limit_time() -> None:
    """Let this process die unless it calls this again within CPU_SECONDS of its CPU time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)


def lift_time_limit() -> None:
    """Undo `limit_time`."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _limit_memory() -> None:
    """Let allocations fail that take this process MOST_MEMORY_BYTES beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[DATA_PAGES])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MOST_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
