"""The middlewares between a request and a page: access control, protection against CSRF, and security headers.

Forms of other sites are rejected twice: by headers that only browsers can set (Fetch Metadata), and by a token
(OWASP, Cross-Site Request Forgery Prevention, "Signed Double-Submit Cookie").
"""

from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, quote

import structlog
from aiohttp import web

from neardup.config.address import is_loopback, named_host
from neardup.errors import NeardupError, Transient
from neardup.moderation.desk import sessions
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.pages import error_page, is_logged_in, page, send_again_page
from neardup.moderation.desk.sessions import SESSION_COOKIE, set_cookie
from neardup.telemetry.http import innermost_frames, route_of

STATIC = "/static/"
MAX_BODY_BYTES = 65_536
MAX_FORM_FIELDS = 32
RETRY_SECONDS = 5
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # "no-referrer" would also remove the Origin header of forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "neardup",
}

log = structlog.get_logger()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Set the security headers of every response."""
    response.headers.update(HEADERS)
    response.headers["Cache-Control"] = "no-cache" if request.path.startswith(STATIC) else "no-store"


@web.middleware
async def show_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure into a plain page.  The content of requests and stories is never logged."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return error_page(request, error.status, error.reason)
    except Transient as error:
        response = send_again_page(
            request, 503, "Nothing was stored yet", f"{error}. Please try again in a few seconds."
        )
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response
    except NeardupError as error:
        log.error("a page failed", page=route_of(request), why=str(error))
        return error_page(request, 500, str(error))
    except Exception as error:  # noqa: BLE001 - its message may quote a story
        log.error("a page failed", page=route_of(request), error=type(error).__name__, where=innermost_frames(error))
        return error_page(request, 500, "An internal error occurred; the log has the details.")


@web.middleware
async def refuse_other_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject host names of other sites that resolve to this machine (DNS rebinding)."""
    if desk_of(request).is_local_only and not is_loopback(named_host(request.host)):
        raise web.HTTPMisdirectedRequest(reason="This desk answers to localhost only")
    return await handler(request)


@web.middleware
async def ensure_session(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give each browser a session.

    After a link on another site, browsers withhold the cookies, so a page that reloads the address comes first.
    """
    session = request.cookies.get(SESSION_COOKIE, "")
    if sessions.is_session(session):
        request[SESSION] = session
        return await handler(request)
    request[SESSION] = sessions.new_session()
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method == "GET":
        return page(request, "continue.html.j2", address=request.path_qs)
    response = await handler(request)
    set_cookie(request, response, SESSION_COOKIE, request[SESSION])
    return response


@web.middleware
async def check_forms(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Accept only forms from this desk's own pages.  A form from before a restart is shown again, for resending."""
    if request.method not in ("GET", "HEAD"):
        if not _is_same_origin(request):
            raise web.HTTPForbidden(reason="This form was not sent from this desk")
        form = request[FORM] = await _form(request)
        if not sessions.is_form_token(desk_of(request).keys, request[SESSION], form.get("token", "")):
            return send_again_page(
                request, 403, "Please send this again", "The desk was restarted after you opened the page."
            )
    return await handler(request)


def _is_same_origin(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return origin in (f"http://{request.host}", f"https://{request.host}") and site == "same-origin"


async def _form(request: web.Request) -> dict[str, str]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType
    body = await request.read()
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
    except ValueError:
        raise web.HTTPBadRequest(reason="The form cannot be read") from None


@web.middleware
async def require_login(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Require a login if other machines can reach the desk."""
    is_open = desk_of(request).is_local_only or request.path == "/login" or request.path.startswith(STATIC)
    if is_open or is_logged_in(request, request[SESSION]):
        return await handler(request)
    if request.method != "GET":
        raise web.HTTPForbidden(reason="You are not logged in")
    raise web.HTTPSeeOther(f"/login?back={quote(request.path_qs)}")


MIDDLEWARES = (show_errors, refuse_other_hosts, ensure_session, check_forms, require_login)
