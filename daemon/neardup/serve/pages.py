"""The addresses besides the API: the page to try it, its description, and what operators and Prometheus read."""

from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from neardup.serve.endpoint import authorize
from neardup.serve.service import SERVICE

STATIC = Path(__file__).with_name("static")


async def try_page(_: web.Request) -> web.FileResponse:
    """GET /: a page to try the API."""
    return web.FileResponse(STATIC / "try.html")


async def healthz(request: web.Request) -> web.Response:
    """GET /healthz: whether the process answers."""
    _, doing = request.app[SERVICE].state
    return web.json_response({"healthy": True, "doing": doing})


async def readyz(request: web.Request) -> web.Response:
    """GET /readyz: whether to send it requests."""
    ready, doing = request.app[SERVICE].state
    return web.json_response({"ready": ready, "doing": doing}, status=200 if ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """GET /metrics, for any token."""
    authorize(request, None)
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})
