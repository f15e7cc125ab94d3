"""The desk as a web application: its addresses, its parts, and serving it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import structlog
from aiohttp import web

from neardup.config import Config
from neardup.config.address import is_loopback
from neardup.errors import Misuse
from neardup.moderation.desk import cluster, judging, pair, people, queue
from neardup.moderation.desk.connections import Connections
from neardup.moderation.desk.desk import DESK, Desk, desk_of
from neardup.moderation.desk.security import MIDDLEWARES, MOST_BYTES, set_headers
from neardup.moderation.desk.sessions import Keys
from neardup.moderation.templating import font_rules
from neardup.pages.reader_pool import OpenReaderPool
from neardup.telemetry.http import listening

STATIC = Path(__file__).parents[1] / "static"

log = structlog.get_logger()


async def serve(config: Config, open_pool: OpenReaderPool, listen: str, stop: asyncio.Event) -> None:
    """`neardup review`: serve the desk on HOST:PORT until `stop` is set.

    Raises Misuse for an address that other machines can reach without a token, Fatal for one that is not
    to be had, for a ledger that is not there and for a store that cannot be opened.
    """
    async with (
        open_desk(config, open_pool, listen) as desk,
        listening(application(desk), listen, "review.listen") as address,
    ):
        log.info("the review desk is open", address=f"http://{address}/")
        await stop.wait()


@asynccontextmanager
async def open_desk(config: Config, open_pool: OpenReaderPool, listen: str) -> AsyncIterator[Desk]:
    """The parts of a desk.  Raises as `serve` does, and Transient for a ledger that is locked."""
    token = config.review.token.get_secret_value()
    is_private = is_loopback(listen.rpartition(":")[0])
    if not is_private and not token:
        raise Misuse(f"review.token: {listen} can be reached by other machines: set NEARDUP_REVIEW__TOKEN")
    with closing(Connections(config.ledger.path)) as ledger:
        async with aclosing(open_pool()) as pool:
            yield Desk(config, ledger, pool, Keys.of(token), is_private)


async def fonts(request: web.Request) -> web.Response:
    """GET /static/fonts.css: the fonts of each language."""
    return web.Response(text=font_rules(desk_of(request).config.registry), content_type="text/css")


def application(desk: Desk) -> web.Application:
    """Every address of the desk."""
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=MOST_BYTES)
    app[DESK] = desk
    app.on_response_prepare.append(set_headers)
    app.add_routes(
        [
            web.get("/login", people.ask_login),
            web.post("/login", people.log_in),
            web.get("/name", people.ask_name),
            web.post("/name", people.take_name),
            web.get("/", queue.show),
            web.get("/search", queue.search),
            web.get("/pair/{a}/{b}", pair.show),
            web.post("/pair/{a}/{b}/verdict", judging.judge_pair),
            web.get("/cluster/{story}", cluster.show),
            web.post("/cluster/{story}/verdict", judging.judge_cluster),
            web.post("/undo/{decision}", judging.undo),
            web.get("/static/fonts.css", fonts),
            web.static("/static", STATIC),
        ]
    )
    return app
