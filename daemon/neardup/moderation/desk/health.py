"""What Prometheus and a container's engine ask the desk: whether it is well, and how many cases and complaints wait.

GET /healthz   whether the desk reads its ledger; for whoever can reach the desk
GET /metrics   the metrics of the process, for a moderator's token or that of the desk
"""

import asyncio
import math
import time

from aiohttp import web

from neardup.errors import NeardupError
from neardup.http.requests import Refused, find_client_address, find_holder, refuse_other_machines
from neardup.http.server import answer_health, answer_metrics
from neardup.ledger import cases, complaints, moderation_statistics, now_ms
from neardup.moderation.desk.parts import Desk, get_desk
from neardup.telemetry import metrics as gauges

CACHED_SECONDS = 5.0


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
            open_cases = await desk.ledger.read(moderation_statistics.count_open_cases)
            undecided = await desk.ledger.read(moderation_statistics.count_undecided, now)
            oldest = await desk.ledger.read(moderation_statistics.find_oldest_open)
            gauges.OPEN_CASES.clear()  # the last one of a language may have been decided
            gauges.UNDECIDED_CASES.clear()
            for language, n in open_cases.items():
                gauges.OPEN_CASES.labels(language).set(n)
            for moderator, n in undecided.items():
                gauges.UNDECIDED_CASES.labels(moderator).set(n)
            gauges.OLDEST_OPEN_CASE.set((now - oldest[1]) / 1000 if oldest else 0)
            hours = desk.config.review.acknowledge_hours
            waiting = await desk.ledger.read(complaints.count_open, now, now - hours * 3_600_000)
            gauges.OPEN_COMPLAINTS.set(waiting.open)
            gauges.UNACKNOWLEDGED_COMPLAINTS.set(waiting.unacknowledged)
            gauges.OVERDUE_COMPLAINTS.set(waiting.overdue)
            gauges.OLDEST_COMPLAINT.set(0 if waiting.oldest is None else (now - waiting.oldest) / 1000)
            gauges.NEXT_DEADLINE.set(math.inf if waiting.next_due is None else (waiting.next_due - now) / 1000)
            self._due_at = time.monotonic() + CACHED_SECONDS


CASE_GAUGES = web.AppKey("case_gauges", CaseGauges)


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz."""
    _refuse_strangers(request)
    try:
        await get_desk(request).ledger.read(cases.is_due)
    except NeardupError as error:
        return answer_health({"healthy": False, "doing": str(error)})
    return answer_health({"healthy": True, "doing": "serving"})


async def metrics(request: web.Request) -> web.Response:
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
