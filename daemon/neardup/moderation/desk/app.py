"""The desk as a web application: its routes and its server."""

import asyncio
from pathlib import Path

from aiohttp import web

from neardup.http.server import listening, make_static_route
from neardup.moderation.desk import (
    api,
    authors,
    cases,
    complaints,
    health,
    meaning,
    pages,
    pair,
    permissions,
    search,
    second_reviews,
    security,
    statistics,
    story,
    verdict_forms,
)
from neardup.moderation.desk.addresses import AUTHOR, PAIR, STORY
from neardup.moderation.desk.parts import DESK, Desk, get_desk
from neardup.moderation.desk.security import MAX_BODY_BYTES, MIDDLEWARES, set_headers
from neardup.moderation.templating import make_font_rules
from neardup.telemetry.log import log
from neardup.telemetry.metrics import STARTED, make_metrics

STATIC = Path(__file__).parents[1] / "static"


async def serve(desk: Desk, listen: str, stop: asyncio.Event) -> None:
    """`neardup review`: serve the desk on HOST:PORT until `stop` is set.  Raises Fatal if the address is in use."""
    make_metrics()
    STARTED.labels("review").set_to_current_time()
    async with listening(make_application(desk), listen, "review.listen") as address:
        log.info("the review desk is open", address=f"http://{address}/")
        await stop.wait()


async def show_fonts(request: web.Request) -> web.Response:
    """GET /static/fonts.css: the style sheet with the fonts of each language."""
    return web.Response(text=make_font_rules(get_desk(request).config.registry), content_type="text/css")


ROUTES = (
    web.get("/login", security.ask_login),
    web.post("/login", security.log_in),
    web.post("/logout", security.log_out),
    web.get("/name", security.ask_name),
    web.post("/name", security.save_name),
    web.get("/", cases.show_cases),
    web.post("/cases/verdict", verdict_forms.decide_chosen_cases),
    web.get(f"/case/{STORY}", cases.show_case),
    web.post(f"/case/{STORY}/verdict", verdict_forms.decide_case),
    web.post(f"/case/{STORY}/reopen", verdict_forms.reopen_case),
    web.get("/search", search.show),
    web.get("/language/{code}", pages.save_language),
    web.get(f"/pair/{PAIR}", pair.show),
    web.post(f"/pair/{PAIR}/verdict", verdict_forms.decide_pair),
    web.get(f"/serials/{PAIR}", pair.show_serials),
    web.get("/meaning", meaning.show_queue),
    web.get(f"/meaning/{PAIR}", meaning.show),
    web.post(f"/meaning/{PAIR}/verdict", meaning.decide),
    web.post(f"/meaning/{PAIR}/undo", meaning.undo),
    web.get(f"/story/{STORY}", story.show_story),
    web.get(f"/story/{STORY}/file", story.show_file),
    web.get(f"/story/{STORY}/file.pdf", story.show_file_as_pdf),
    web.get(f"/story/{STORY}/proof", story.show_proof),
    web.post(f"/story/{STORY}/complaint", complaints.record),
    web.get("/complaints", complaints.list_all),
    web.get("/complaint/{number}", complaints.show),
    web.post("/complaint/{number}", complaints.act),
    web.get("/statistics", statistics.show),
    web.get("/authors", authors.list_offenders),
    web.get(f"/author/{AUTHOR}", authors.show),
    web.post(f"/author/{AUTHOR}/hide", authors.hide),
    web.post(f"/author/{AUTHOR}/show", authors.show_again),
    web.get("/permissions", permissions.show),
    web.post("/permissions", permissions.enter),
    web.post("/permissions/{permission}/revoke", permissions.revoke),
    web.get("/second", second_reviews.show_next),
    web.post(f"/second/{STORY}/verdict", second_reviews.review),
    web.get("/decisions", verdict_forms.show_decisions),
    web.post("/undo/{decision}", verdict_forms.undo_decision),
    web.get("/static/fonts.css", show_fonts),
    make_static_route(STATIC),
    web.get("/healthz", health.healthz),
    web.get("/metrics", health.metrics),
    *api.ROUTES,
)


def make_application(desk: Desk) -> web.Application:
    """The web application with every route of the desk."""
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=MAX_BODY_BYTES)
    app[DESK] = desk
    app[health.CASE_GAUGES] = health.CaseGauges()
    app.on_response_prepare.append(set_headers)
    app.add_routes(ROUTES)
    return app
