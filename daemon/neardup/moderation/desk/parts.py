"""The parts of an open desk: its connections to the ledger, the texts it reads, and the verdicts it announces.

A run may be writing to the ledger at the same time.  A verdict is stored with its event in the outbox of the webhooks,
from which it is posted soon.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from aiohttp import web
from msgspec import Struct, field

from neardup.config import Config
from neardup.errors import LedgerReplaced, NeardupError, Transient
from neardup.ledger import Ledger, cases, connect, now_ms, permissions, read, snapshot
from neardup.moderation.desk.moderators import Keys, LoginLimit, Moderator
from neardup.moderation.interface import gettext
from neardup.pages.reader_pool import ReaderPool
from neardup.query.compare import LoadedStory, UnreadableStory, load_story
from neardup.query.complaints import Complaints
from neardup.query.search import PassageSearch, TextSearch, TitleSearch
from neardup.records import Verdict
from neardup.telemetry.log import log, log_phase

P = ParamSpec("P")
T = TypeVar("T")
READERS = 4
BUSY_MS = 5_000  # shorter than a run waits, because a moderator is waiting for the page
MAX_CONCURRENT_READS = 8  # texts of stories
SESSION = web.RequestKey("session", str)
FORM = web.RequestKey("form", dict[str, str])
READ_SECONDS = 10.0
READ_TITLES_SECONDS = 60


class Connections:
    """A few connections for reading and one for writing, each used by one request at a time.

    If another file replaces the ledger, they are opened again: what is read is read from the new one, and a verdict
    that went to the old one is refused, so that the moderator sends it again.
    """

    def __init__(self, path: Path) -> None:
        """Open the connections.  Raises Fatal, for example if there is no ledger, and Transient if it is locked."""
        if path.exists():  # it may be of an earlier schema
            connect(path).close()
        self._idle: asyncio.LifoQueue[Ledger] = asyncio.LifoQueue()
        for _ in range(READERS):
            self._idle.put_nowait(Ledger(path, read))
        self._writer = Ledger(path, _connect)
        self._writing = asyncio.Lock()

    async def read(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(connection, ...)` on one snapshot of the ledger.  Raises as `Ledger.do` does."""
        context = copy_context()  # with the language of the interface: the work may put something into words

        def call(db: sqlite3.Connection) -> T:
            with snapshot(db):
                return context.run(work, db, *args, **kwargs)

        reader = await self._idle.get()
        try:
            try:
                return await reader.do(call)
            except LedgerReplaced:
                reader = await asyncio.to_thread(self._open_again, reader, read)
                return await reader.do(call)
        finally:
            self._idle.put_nowait(reader)

    async def write(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like `read`, on the writing connection.

        Raises Transient if another process keeps the ledger locked, LedgerReplaced, after which the next call may
        succeed.
        """
        async with self._writing:
            try:
                return await self._writer.do(work, *args, **kwargs)
            except LedgerReplaced:
                self._writer = await asyncio.to_thread(self._open_again, self._writer, _connect)
                raise

    @staticmethod
    def _open_again(former: Ledger, open_connection: Callable[[Path], sqlite3.Connection]) -> Ledger:
        """The ledger that has the name now.  Raises LedgerReplaced if there is none, and as `connect` and `read` do."""
        former.refuse_successor()
        ledger = Ledger(former.path, open_connection)
        former.close()
        return ledger

    async def refresh_cases(self) -> None:
        """Bring permissions and cases up to date before they are read, unless another process locks the ledger."""
        with suppress(Transient):
            if await self.read(permissions.is_due, now_ms()):
                await self.write(permissions.refresh, now_ms())
            if await self.read(cases.is_due):
                await self.write(cases.refresh)

    def close(self) -> None:
        while not self._idle.empty():
            self._idle.get_nowait().close()
        self._writer.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = connect(path)
    db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return db


class Desk(Struct, frozen=True):
    """The parts of an open desk.

    `moderators` are those who may log in; without `has_moderators`, it is one without a name, who has the desk's token.
    """

    config: Config
    ledger: Connections
    pool: ReaderPool
    keys: Keys
    moderators: Callable[[], Sequence[Moderator]]
    titles: TitleSearch
    texts: TextSearch
    open_passage_search: Callable[[], AbstractAsyncContextManager[PassageSearch]]
    wake_posting: asyncio.Event  # a verdict may wait to be posted
    complaints: Complaints
    login_limit: LoginLimit = field(default_factory=LoginLimit)
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_READS))

    @property
    def has_moderators(self) -> bool:
        """Whether each moderator has a token, and so a name that cannot be typed."""
        return self.config.review.moderators is not None

    @property
    def needs_login(self) -> bool:
        """Whether there is a token, without which the desk answers this machine only."""
        return self.has_moderators or bool(self.config.review.token.reveal())


DESK = web.AppKey("desk", Desk)


@asynccontextmanager
async def keep_reading_words(titles: TitleSearch, texts: TextSearch) -> AsyncIterator[None]:
    """Read the pending titles for the search, now and each minute, and the texts once they are wanted, meanwhile."""

    async def read_titles() -> None:
        while True:
            try:
                with log_phase("review", "reading titles for the search"):
                    await titles.catch_up()
            except NeardupError as error:
                log.warning("the titles cannot be read for the search", why=str(error))
            await asyncio.sleep(READ_TITLES_SECONDS)

    async def read_texts() -> None:
        while await texts.is_wanted.wait():
            try:
                await texts.catch_up()
                texts.is_wanted.clear()
            except NeardupError as error:
                log.warning("the texts cannot be read for the search", why=str(error))
                await asyncio.sleep(READ_TITLES_SECONDS)

    reading = [asyncio.create_task(read_titles(), name="titles"), asyncio.create_task(read_texts(), name="texts")]
    try:
        yield
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


def get_desk(request: web.Request) -> Desk:
    return request.app[DESK]


async def load_text(desk: Desk, known: Mapping[str, Any]) -> LoadedStory | UnreadableStory:
    """A story with its text, or without it if the store fails or does not answer in time.

    `known` is its row of `query.compare.describe_stories`.
    """
    try:
        async with desk.reads, asyncio.timeout(READ_SECONDS):
            return await load_story(desk.pool, known)
    except TimeoutError:
        return UnreadableStory(known, gettext("the store takes too long to answer"))
    except NeardupError as error:
        return UnreadableStory(known, str(error))


def announce_verdict(desk: Desk, decision: int, verdict: Verdict) -> None:
    """Log a verdict that was stored, and have it posted soon."""
    log.info("a verdict was stored", decision=decision, verdict=str(verdict))
    desk.wake_posting.set()


def announce_undo(desk: Desk, decision: int) -> None:
    """Log that a decision was undone, and have that posted soon."""
    log.info("a verdict was undone", decision=decision)
    desk.wake_posting.set()
