"""The desk object that every request handler uses."""

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from neardup.config import Config
from neardup.moderation.desk.connections import Connections
from neardup.moderation.desk.login_limit import LoginLimit
from neardup.moderation.desk.sessions import Keys
from neardup.pages.reader_pool import ReaderPool

MAX_CONCURRENT_READS = 8  # texts of stories


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of an open desk; if `is_local_only`, other machines cannot reach it and it needs no token."""

    config: Config
    ledger: Connections
    pool: ReaderPool
    keys: Keys
    is_local_only: bool
    login_limit: LoginLimit = field(default_factory=LoginLimit)
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_READS))


DESK = web.AppKey("desk", Desk)
SESSION = web.RequestKey("session", str)
FORM = web.RequestKey("form", dict[str, str])


def desk_of(request: web.Request) -> Desk:
    return request.app[DESK]
