"""The desk's connections to the ledger, to which a run may be writing at the same time."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from neardup.errors import Transient
from neardup.ledger import Ledger, cases, connect, read, snapshot

P = ParamSpec("P")
T = TypeVar("T")
READERS = 4
BUSY_MS = 5_000  # shorter than a run waits, because a moderator is waiting for the page


class Connections:
    """A few connections for reading and one for writing, each used by one request at a time."""

    def __init__(self, path: Path) -> None:
        """Open the connections.  Raises Fatal, for example if there is no ledger, and Transient if it is locked."""
        if path.exists():  # an older schema is migrated
            connect(path).close()
        self._readers = [Ledger(path, read) for _ in range(READERS)]
        self._idle: asyncio.LifoQueue[Ledger] = asyncio.LifoQueue()
        for reader in self._readers:
            self._idle.put_nowait(reader)
        self._writer = Ledger(path, _connect)

    async def read(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(connection, ...)` on one snapshot of the ledger.  Raises as `Ledger.do` does."""
        context = copy_context()  # with the language of the interface: the work may put something into words

        def call(db: sqlite3.Connection) -> T:
            with snapshot(db):
                return context.run(work, db, *args, **kwargs)

        reader = await self._idle.get()
        try:
            return await reader.do(call)
        finally:
            self._idle.put_nowait(reader)

    async def write(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like `read`, on the writing connection.  Raises Transient if another process keeps the ledger locked."""
        return await self._writer.do(work, *args, **kwargs)

    async def refresh_cases(self) -> None:
        """Bring the cases up to date before they are read, unless another process keeps the ledger locked."""
        if await self.read(cases.is_due):
            with suppress(Transient):
                await self.write(cases.refresh)

    def close(self) -> None:
        for ledger in (*self._readers, self._writer):
            ledger.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = connect(path)
    db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return db
