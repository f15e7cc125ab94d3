"""The desk's connections to the ledger, which a daemon may be writing to at the same time."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from neardup.ledger import connect, read, snapshot, translated

P = ParamSpec("P")
T = TypeVar("T")
READERS = 4
BUSY_MS = 5_000  # a moderator waits for an answer


class Connections:
    """A few connections for reading and one for writing, each used by one request at a time."""

    def __init__(self, path: Path) -> None:
        """Open them.  Raises Fatal, also where there is no ledger yet, and Transient where it is locked."""
        self._path = path
        if path.exists():  # it may be an older version's
            connect(path).close()
        self._idle = [read(path)]
        self._reads = asyncio.Semaphore(READERS)
        self._writer = connect(path)
        self._writer.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        self._writes = asyncio.Lock()

    async def read(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(connection, ...)` off the event loop, of one moment of the ledger.  Raises as `translated` does."""

        def call() -> T:
            with translated(self._path):
                try:
                    db = self._idle.pop()
                except IndexError:
                    db = read(self._path)
                try:
                    with snapshot(db):
                        return work(db, *args, **kwargs)
                finally:
                    self._idle.append(db)

        async with self._reads:
            return await asyncio.to_thread(call)

    async def write(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same on the connection that writes.  Raises Transient where another held the ledger all the while."""

        def call() -> T:
            with translated(self._path):
                return work(self._writer, *args, **kwargs)

        async with self._writes:
            return await asyncio.to_thread(call)

    def close(self) -> None:
        for db in (*self._idle, self._writer):
            db.close()
