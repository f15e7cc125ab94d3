"""The desk as a web application: its routes, its server, and what Prometheus and a container's engine ask it.

GET /healthz   whether the desk reads its ledger; for whoever can reach the desk
GET /metrics   the metrics of the process, for a moderator's token or that of the desk
"""

import asyncio
import math
import time

from aiohttp import web

from neardup.errors import NeardupError
from neardup.http.requests import Refused, find_client_address, find_holder, refuse_other_machines
from neardup.http.server import answer_health, answer_metrics, listening, make_static_route
from neardup.ledger import cases as ledger_cases
from neardup.ledger import complaints as ledger_complaints
from neardup.ledger import now_ms
from neardup.moderation.desk import (
    api,
    authors,
    cases,
    complaints,
    deciding,
    meaning,
    pages,
    pair,
    permissions,
    search,
    security,
    statistics,
    story,
)
from neardup.moderation.desk.addresses import AUTHOR, PAIR, STORY
from neardup.moderation.desk.parts import DESK, Desk, get_desk
from neardup.moderation.desk.security import MAX_BODY_BYTES, MIDDLEWARES, set_headers
from neardup.moderation.templating import STATIC, make_font_rules
from neardup.telemetry import metrics
from neardup.telemetry.log import log

CACHED_SECONDS = 5.0


async def serve(desk: Desk, listen: str, stop: asyncio.Event) -> None:
    """`neardup review`: serve the desk on HOST:PORT until `stop` is set.  Raises Fatal if the address is in use."""
    metrics.make_metrics()
    metrics.STARTED.labels("review").set_to_current_time()
    async with listening(make_application(desk), listen, "review.listen") as address:
        log.info("the review desk is open", address=f"http://{address}/")
        await stop.wait()


async def show_fonts(request: web.Request) -> web.Response:
    """GET /static/fonts.css: the style sheet with the fonts of each language."""
    return web.Response(text=make_font_rules(get_desk(request).config.registry), content_type="text/css")


class CaseGauges:
    """Sets the gauges of the cases and complaints, at most every CACHED_SECONDS, however many programs read them."""

    def __init__(self) -> None:
        self._setting = asyncio.Lock()
        self._due_at = float("-inf")

    async def refresh(self, desk: Desk) -> None:
        """Set the gauges if they are due.  Raises as `Connections.read` does."""
        async with self._setting:
            if time.monotonic() < self._due_at:
                return
            await desk.ledger.refresh_cases()
            now = now_ms()
            open_cases = await desk.ledger.read(ledger_cases.count_open_by_language)
            undecided = await desk.ledger.read(ledger_cases.count_undecided, now)
            oldest = await desk.ledger.read(ledger_cases.find_oldest_open)
            metrics.OPEN_CASES.clear()  # the last one of a language may have been decided
            metrics.UNDECIDED_CASES.clear()
            for language, n in open_cases.items():
                metrics.OPEN_CASES.labels(language).set(n)
            for moderator, n in undecided.items():
                metrics.UNDECIDED_CASES.labels(moderator).set(n)
            metrics.OLDEST_OPEN_CASE.set((now - oldest[1]) / 1000 if oldest else 0)
            hours = desk.config.review.acknowledge_hours
            waiting = await desk.ledger.read(ledger_complaints.count_open, now, now - hours * 3_600_000)
            metrics.OPEN_COMPLAINTS.set(waiting.open)
            metrics.UNACKNOWLEDGED_COMPLAINTS.set(waiting.unacknowledged)
            metrics.OVERDUE_COMPLAINTS.set(waiting.overdue)
            metrics.OLDEST_COMPLAINT.set(0 if waiting.oldest is None else (now - waiting.oldest) / 1000)
            metrics.NEXT_DEADLINE.set(math.inf if waiting.next_due is None else (waiting.next_due - now) / 1000)
            self._due_at = time.monotonic() + CACHED_SECONDS


CASE_GAUGES = web.AppKey("case_gauges", CaseGauges)


async def show_health(request: web.Request) -> web.Response:
    """GET /healthz."""
    _refuse_strangers(request)
    try:
        await get_desk(request).ledger.read(ledger_cases.is_due)
    except NeardupError as error:
        return answer_health({"healthy": False, "doing": str(error)})
    return answer_health({"healthy": True, "doing": "serving"})


async def show_metrics(request: web.Request) -> web.Response:
    """GET /metrics."""
    _refuse_strangers(request)
    if get_desk(request).needs_login:
        _require_token(request)
    await request.app[CASE_GAUGES].refresh(get_desk(request))
    return answer_metrics()


def _refuse_strangers(request: web.Request) -> None:
    """Without a login, answer this machine only, as the pages do.  Raises Refused."""
    if not get_desk(request).needs_login:
        refuse_other_machines(request)


def _require_token(request: web.Request) -> None:
    """Refuse a request without a token that the desk knows, and one that comes too soon after wrong ones."""
    desk = get_desk(request)
    client = find_client_address(request, desk.config.review.proxies)
    wait = desk.login_limit.wait_seconds(client)
    try:
        find_holder(request, () if wait else desk.moderators())
    except Refused:
        if "Authorization" in request.headers:
            desk.login_limit.refuse(client, wrong=not wait)
        raise
    desk.login_limit.accept(client)


ROUTES = (
    web.get("/login", security.ask_login),
    web.post("/login", security.log_in),
    web.post("/logout", security.log_out),
    web.get("/name", security.ask_name),
    web.post("/name", security.save_name),
    web.get("/", cases.show_cases),
    web.post("/cases/verdict", deciding.post_cases_verdict),
    web.get(f"/case/{STORY}", cases.show_case),
    web.post(f"/case/{STORY}/verdict", deciding.post_case_verdict),
    web.post(f"/case/{STORY}/reopen", deciding.post_reopening),
    web.get("/search", search.show),
    web.get("/language/{code}", pages.save_language),
    web.get(f"/pair/{PAIR}", pair.show),
    web.post(f"/pair/{PAIR}/verdict", deciding.post_pair_verdict),
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
    web.get("/second", cases.show_second_review),
    web.post(f"/second/{STORY}/verdict", cases.review_case),
    web.get("/decisions", deciding.show_decisions),
    web.post("/undo/{decision}", deciding.post_undo),
    web.get("/static/fonts.css", show_fonts),
    make_static_route(STATIC),
    web.get("/healthz", show_health),
    web.get("/metrics", show_metrics),
    *api.ROUTES,
)


def make_application(desk: Desk) -> web.Application:
    app = web.Application(middlewares=MIDDLEWARES, client_max_size=MAX_BODY_BYTES)
    app[DESK] = desk
    app[CASE_GAUGES] = CaseGauges()
    app.on_response_prepare.append(set_headers)
    app.add_routes(ROUTES)
    return app
