"""The desk object that every request handler uses."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from neardup.config import Config
from neardup.moderation.desk.connections import Connections
from neardup.moderation.desk.login_limit import LoginLimit
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.sessions import Keys
from neardup.pages.reader_pool import ReaderPool
from neardup.query.search import TitleSearch

MAX_CONCURRENT_READS = 8  # texts of stories
MAX_ANNOUNCEMENTS = 1_000  # that wait for a slow webhook


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of an open desk; if `is_local_only`, other machines cannot reach it.

    `moderators` are those who may log in; without `has_moderators`, it is one without a name, who has the desk's token.
    """

    config: Config
    ledger: Connections
    pool: ReaderPool
    keys: Keys
    is_local_only: bool
    moderators: Callable[[], Sequence[Moderator]]
    titles: TitleSearch
    login_limit: LoginLimit = field(default_factory=LoginLimit)
    announcements: asyncio.Queue[tuple[int, str]] = field(default_factory=lambda: asyncio.Queue(MAX_ANNOUNCEMENTS))
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_READS))

    @property
    def has_moderators(self) -> bool:
        """Whether each moderator has a token, and so a name that cannot be typed."""
        return self.config.review.moderators is not None

    @property
    def needs_login(self) -> bool:
        return self.has_moderators or not self.is_local_only


DESK = web.AppKey("desk", Desk)
SESSION = web.RequestKey("session", str)
FORM = web.RequestKey("form", dict[str, str])


def desk_of(request: web.Request) -> Desk:
    return request.app[DESK]
