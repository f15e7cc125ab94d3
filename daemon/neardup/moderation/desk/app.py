"""The desk as a web application: its routes, its parts, and its server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

from aiohttp import web

from neardup.config import Config
from neardup.config.address import is_loopback
from neardup.errors import Misuse, NeardupError
from neardup.http.server import listening
from neardup.http.tokens import digest_of
from neardup.moderation.desk import (
    api,
    authors,
    cases,
    meaning,
    pages,
    pair,
    search,
    security,
    statistics,
    story,
    verdict_forms,
)
from neardup.moderation.desk.moderators import Moderator, open_moderators
from neardup.moderation.desk.parts import DESK, Connections, Desk, announcing, desk_of
from neardup.moderation.desk.security import MAX_BODY_BYTES, MIDDLEWARES, set_headers
from neardup.moderation.desk.sessions import Keys
from neardup.moderation.templating import font_rules
from neardup.pages.reader_pool import OpenReaderPool
from neardup.query.search import TitleSearch, open_titles
from neardup.telemetry.log import log

READ_TITLES_SECONDS = 60
STATIC = Path(__file__).parents[1] / "static"


async def serve(config: Config, open_pool: OpenReaderPool, listen: str, stop: asyncio.Event) -> None:
    """`neardup review`: serve the desk on HOST:PORT until `stop` is set.

    Raises Misuse if other machines can reach the address and no token is set, or the file of the moderators is wrong;
    Fatal if the address is in use, the ledger does not exist, or the store cannot be opened.
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
    is_local_only = is_loopback(listen.rpartition(":")[0])
    token = "" if config.review.moderators else config.review.token.revealed()
    if not (is_local_only or token or config.review.moderators):
        raise Misuse(f"review.token: {listen} can be reached by other machines: set NEARDUP_REVIEW__TOKEN")
    moderators = _moderators(config, token)
    with closing(Connections(config.ledger.path)) as ledger:
        async with aclosing(open_pool()) as pool:
            with closing(open_titles(config.ledger.path)) as index:
                titles = TitleSearch(index, ledger.read)
                reading = asyncio.create_task(_read_titles(titles), name="titles")
                try:
                    desk = Desk(config, ledger, pool, Keys.of(token), is_local_only, moderators, titles)
                    async with announcing(desk):
                        yield desk
                finally:
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)


def _moderators(config: Config, token: str) -> Callable[[], Sequence[Moderator]]:
    if config.review.moderators:
        return open_moderators(config.review.moderators, config.registry).holders
    return lambda: [Moderator("", digest_of(token))] if token else []


async def _read_titles(titles: TitleSearch) -> None:
    """Read the titles that the search lacks, now and each minute."""
    while True:
        try:
            await titles.catch_up()
        except NeardupError as error:
            log.warning("the titles cannot be read for the search", why=str(error))
        await asyncio.sleep(READ_TITLES_SECONDS)


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
            web.get("/login", security.ask_login),
            web.post("/login", security.log_in),
            web.post("/logout", security.log_out),
            web.get("/name", security.ask_name),
            web.post("/name", security.save_name),
            web.get("/", cases.show_cases),
            web.post("/cases/verdict", verdict_forms.decide_chosen_cases),
            web.get("/case/{story}", cases.show_case),
            web.post("/case/{story}/verdict", verdict_forms.decide_case),
            web.post("/case/{story}/reopen", verdict_forms.reopen_case),
            web.get("/search", search.show),
            web.get("/language/{code}", pages.save_language),
            web.get("/pair/{a}/{b}", pair.show),
            web.post("/pair/{a}/{b}/verdict", verdict_forms.decide_pair),
            web.get("/meaning", meaning.show_queue),
            web.get("/meaning/{a}/{b}", meaning.show),
            web.post("/meaning/{a}/{b}/verdict", meaning.decide),
            web.post("/meaning/{a}/{b}/undo", meaning.undo),
            web.get("/story/{story}", story.show_story),
            web.get("/story/{story}/file", story.show_file),
            web.get("/story/{story}/file.pdf", story.show_file_as_pdf),
            web.get("/statistics", statistics.show),
            web.get("/authors", authors.list_offenders),
            web.get("/author/{author}", authors.show),
            web.post("/undo/{decision}", verdict_forms.undo_decision),
            web.get("/static/fonts.css", fonts),
            web.static("/static", STATIC),
            *api.ROUTES,
            *api.MEANING_ROUTES,
        ]
    )
    return app
