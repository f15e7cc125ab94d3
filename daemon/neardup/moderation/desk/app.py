"""The desk as a web application: its routes, its parts, and its server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import structlog
from aiohttp import web

from neardup.config import Config
from neardup.config.address import is_loopback
from neardup.errors import Misuse
from neardup.moderation.desk import cluster, login, pair, queue, story, verdict_forms
from neardup.moderation.desk.connections import Connections
from neardup.moderation.desk.desk import DESK, Desk, desk_of
from neardup.moderation.desk.security import MAX_BODY_BYTES, MIDDLEWARES, set_headers
from neardup.moderation.desk.sessions import Keys
from neardup.moderation.templating import font_rules
from neardup.pages.reader_pool import OpenReaderPool
from neardup.telemetry.http import listening

STATIC = Path(__file__).parents[1] / "static"

log = structlog.get_logger()


async def serve(config: Config, open_pool: OpenReaderPool, listen: str, stop: asyncio.Event) -> None:
    """`neardup review`: serve the desk on HOST:PORT until `stop` is set.

    Raises Misuse if other machines can reach the address and no token is set, Fatal if the address is in use, the
    ledger does not exist, or the store cannot be opened.
    """
    async with (
        open_desk(config, open_pool, listen) as desk,
        listening(application(desk), listen, "review.listen") as address,
    ):
        log.info("the review desk is open", address=f"http://{address}/")
        await stop.wait()


@asynccontextmanager
async def open_desk(config: Config, open_pool: OpenReaderPool, listen: str) -> AsyncIterator[Desk]:
    """Open the parts of a desk.  Raises as `serve` does, and Transient if the ledger is locked."""
    token = config.review.token.get_secret_value()
    is_local_only = is_loopback(listen.rpartition(":")[0])
    if not is_local_only and not token:
        raise Misuse(f"review.token: {listen} can be reached by other machines: set NEARDUP_REVIEW__TOKEN")
    with closing(Connections(config.ledger.path)) as ledger:
        async with aclosing(open_pool()) as pool:
            yield Desk(config, ledger, pool, Keys.of(token), is_local_only)


async def fonts(request: web.Request) -> web.Response:
    """GET /static/fonts.css: the style sheet with the fonts of each language."""
    return web.Response(text=font_rules(desk_of(request).config.registry), content_type="text/css")


def application(desk: Desk) -> web.Application:
    """The web application with every route of the desk."""
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=MAX_BODY_BYTES)
    app[DESK] = desk
    app.on_response_prepare.append(set_headers)
    app.add_routes(
        [
            web.get("/login", login.ask_login),
            web.post("/login", login.log_in),
            web.post("/logout", login.log_out),
            web.get("/name", login.ask_name),
            web.post("/name", login.save_name),
            web.get("/", queue.show),
            web.get("/search", queue.search),
            web.get("/pair/{a}/{b}", pair.show),
            web.post("/pair/{a}/{b}/verdict", verdict_forms.decide_pair),
            web.get("/cluster/{story}", cluster.show),
            web.post("/cluster/{story}/verdict", verdict_forms.decide_cluster),
            web.get("/story/{story}", story.show),
            web.post("/story/{story}/verdict", verdict_forms.decide_story),
            web.post("/undo/{decision}", verdict_forms.undo),
            web.get("/static/fonts.css", fonts),
            web.static("/static", STATIC),
        ]
    )
    return app
