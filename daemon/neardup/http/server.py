"""HTTP servers: listening, the metrics and the health that they answer with, and what their log lines may say."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web, web_response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from neardup.errors import Fatal
from neardup.http.requests import answer_exception, answer_no_http
from neardup.telemetry.metrics import STARTED, make_metrics

# aiohttp would log a traceback, which quotes the request, for each one that is no HTTP.
SILENT = logging.getLogger("neardup.no_http")
SILENT.setLevel(logging.CRITICAL)
LONGEST_LINE = 65_536  # bytes of a request's first line; the path of a story with a long name takes 12,000
SHUTDOWN_SECONDS = 5.0  # for running requests to finish

# Not those of Python and aiohttp, which show an attacker what to try; answers to what is no HTTP pass no middleware.
vars(web_response)["SERVER_SOFTWARE"] = "neardup"

Health = Callable[[], dict[str, Any]]


@asynccontextmanager
async def serve_metrics(listen: str, command: str, health: Health) -> AsyncIterator[None]:
    """Serve /metrics and /healthz on HOST:PORT while the context lasts.  Raises Fatal if it cannot listen there.

    Commands share the port with the daemon, and the label `command` distinguishes them in alerts.
    `health` returns the object that /healthz answers with; its `healthy` decides between 200 and 503.
    """
    make_metrics()
    STARTED.labels(command).set_to_current_time()

    async def metrics(_: web.Request) -> web.Response:
        return answer_metrics()

    async def healthz(_: web.Request) -> web.Response:
        return answer_health(health())

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz)])
    async with listening(app, listen, "metrics.listen"):
        yield


def answer_health(state: dict[str, Any]) -> web.Response:
    """The answer to /healthz: a JSON object, whose `healthy` decides between 200 and 503."""
    return web.json_response(state, status=200 if state["healthy"] else 503)


def answer_metrics() -> web.Response:
    """The metrics of the process, as Prometheus reads them."""
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def make_static_route(folder: Path) -> web.RouteDef:
    """The route of the files of a folder.

    That of aiohttp looks for whatever path a request names, and fails for a name that is too long for a file.
    """
    files = {path.name: path for path in folder.iterdir()}

    async def send(request: web.Request) -> web.FileResponse:
        path = files.get(request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path)

    return web.get("/static/{name}", send)


@asynccontextmanager
async def listening(
    app: web.Application, listen: str, setting: str, seconds_to_finish: float = SHUTDOWN_SECONDS
) -> AsyncIterator[str]:
    """Serve an application on HOST:PORT while the context lasts; yields the address, with the port chosen for port 0.

    At the end it takes no further connections, and gives the requests under way `seconds_to_finish`.

    Raises Fatal, naming the setting, if it cannot listen there.  Requests are not logged: their URLs hold what people
    search for.
    """
    web.RequestHandler.handle_error = answer_no_http  # type: ignore[method-assign, assignment]
    app.on_response_prepare.append(answer_exception)
    runner = web.AppRunner(
        app, access_log=None, logger=SILENT, shutdown_timeout=seconds_to_finish, max_line_size=LONGEST_LINE
    )
    await runner.setup()
    host, _, port = listen.rpartition(":")
    try:
        await web.TCPSite(runner, host.strip("[]"), int(port)).start()
    except OSError as error:
        await runner.cleanup()
        raise Fatal(f"{setting}: cannot listen on {listen}: {error.strerror}") from error
    try:
        yield f"{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
