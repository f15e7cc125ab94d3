"""What stands between a request and a page: the middlewares, the login, and the name of the moderator.

Forms of other sites are rejected twice: by headers that only browsers can set (Fetch Metadata), and by a token (OWASP,
Cross-Site Request Forgery Prevention, "Signed Double-Submit Cookie").  A moderator logs in with a token where the desk
needs one, and enters a name where moderators have no tokens of their own.  The JSON API has neither cookies nor forms:
of all this, it has the problems that its failures become; so have /healthz and /metrics, which answer this machine only
where the desk has no login.
"""

import json
from urllib.parse import parse_qsl, quote

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from neardup.errors import Conflict, NeardupError, Transient
from neardup.http.requests import (
    BODY_SECONDS,
    FAILED,
    FORBIDDEN,
    ProblemType,
    Refused,
    answer_or_problem,
    find_client_address,
    find_route,
    log_failure,
    read_body,
    refuse_other_machines,
)
from neardup.http.tokens import match_token
from neardup.ledger.cases import CaseHeld
from neardup.moderation.desk import moderators
from neardup.moderation.desk.moderators import (
    LOGIN_COOKIE,
    LOGIN_SECONDS,
    NAME_COOKIE,
    SESSION_COOKIE,
    NotPermitted,
    choose_local_path,
    clean_name,
)
from neardup.moderation.desk.pages import (
    SendAgain,
    choose_interface,
    find_login,
    is_for_programs,
    is_over_tls,
    render_error_page,
    render_page,
    render_send_again,
    set_cookie,
)
from neardup.moderation.desk.parts import FORM, SESSION, get_desk
from neardup.moderation.interface import gettext, translate_later
from neardup.telemetry.log import log

STATIC = "/static/"
OPEN_FOLDERS = STATIC, "/language/"
NAME_SECONDS = 365 * 86_400
MAX_BODY_BYTES = 65_536
MAX_FORM_FIELDS = 100
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
}
CONFLICT = ProblemType("conflict", 409, "The flags are not as they were read")
HELD = ProblemType("held", 409, "Another moderator holds the case")
PROBLEM_OF: dict[type[NeardupError], ProblemType] = {
    CaseHeld: HELD,
    Conflict: CONFLICT,
    NotPermitted: FORBIDDEN,
    NeardupError: FAILED,
}


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    is_fixed = request.path.startswith(STATIC) and request.query_string  # the address has the hash of the content
    response.headers["Cache-Control"] = "max-age=31536000, immutable" if is_fixed else "no-store"


@web.middleware
async def answer_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure of what programs ask into a problem."""
    if not is_for_programs(request):
        return await handler(request)
    return await answer_or_problem(request, handler, _dump_members, PROBLEM_OF)


def _dump_members(refused: Refused) -> str:
    return json.dumps(refused.members)


@web.middleware
async def show_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure into a plain page.  The content of requests and stories is never logged."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return render_error_page(request, error.status, error.reason)
    except Transient as error:
        response = render_send_again(
            request,
            503,
            translate_later("Nothing was stored yet"),
            gettext("%(error)s. Please try again in a few seconds.", error=error),
        )
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response
    except NotPermitted as error:
        return render_send_again(
            request, 403, translate_later("This is not among your rights"), f"{error}.".capitalize()
        )
    except NeardupError as error:
        log.error("a request failed", route=find_route(request), why=str(error))
        return render_error_page(request, 500, str(error))
    except Exception as error:  # noqa: BLE001 - its message may quote a story
        log_failure(request, error)
        return render_error_page(request, 500, translate_later("An internal error occurred; the log has the details."))


@web.middleware
async def refuse_other_hosts(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Without a login, answer this machine only."""
    if not get_desk(request).needs_login:
        try:
            refuse_other_machines(request)
        except Refused:
            raise web.HTTPMisdirectedRequest(reason=translate_later("This desk answers to localhost only")) from None
    return await handler(request)


@web.middleware
async def ensure_session(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give each browser a session.

    After a link on another site, browsers withhold the cookies, so a page that reloads the address comes first.
    """
    session = request.cookies.get(SESSION_COOKIE, "")
    if moderators.is_session(session):
        request[SESSION] = session
        return await handler(request)
    request[SESSION] = moderators.make_session()
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method == "GET":
        return render_page(request, "continue.html.j2", address=request.path_qs)
    response = await handler(request)
    set_cookie(request, response, SESSION_COOKIE, request[SESSION])
    return response


@web.middleware
async def check_forms(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Accept only forms from this desk's own pages.  One that is not taken is shown again, for resending."""
    if request.method not in ("GET", "HEAD"):
        if not _is_same_origin(request):
            raise web.HTTPForbidden(reason=translate_later("This form was not sent from this desk"))
        form = request[FORM] = await _read_form(request)
        if not moderators.is_form_token(get_desk(request).keys, request[SESSION], form.get("token", "")):
            return render_send_again(
                request,
                403,
                translate_later("Please send this again"),
                translate_later("The desk was restarted after you opened the page."),
            )
    try:
        return await handler(request)
    except SendAgain as refusal:
        return render_send_again(request, *refusal.args)


def _is_same_origin(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    return origin in (f"http://{request.host}", f"https://{request.host}") and site == "same-origin"


async def _read_form(request: web.Request) -> dict[str, str]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType
    try:
        body = await read_body(request, BODY_SECONDS)
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
    except (ValueError, Refused):
        raise web.HTTPBadRequest(reason=translate_later("The form cannot be read")) from None


@web.middleware
async def require_login(request: web.Request, handler: Handler) -> web.StreamResponse:
    is_open = not get_desk(request).needs_login or request.path == "/login" or request.path.startswith(OPEN_FOLDERS)
    if is_open or find_login(request):
        return await handler(request)
    if request.method != "GET":
        message = translate_later("Your login has ended. Log in again in another tab, then send this again.")
        raise SendAgain(403, translate_later("You are not logged in"), message)
    raise web.HTTPSeeOther(f"/login?back={quote(request.path_qs)}")


def _skip_programs(middleware: Middleware) -> Middleware:
    """Leaves out what programs ask, which has no cookies and no forms."""

    @web.middleware
    async def apply(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await (handler(request) if is_for_programs(request) else middleware(request, handler))

    return apply


PAGES = (show_errors, refuse_other_hosts, ensure_session, check_forms, require_login)
MIDDLEWARES = (choose_interface, answer_problems, *map(_skip_programs, PAGES))


# The login and the name.


async def ask_login(request: web.Request) -> web.Response:
    """GET /login?back=ADDRESS."""
    return render_page(
        request, "login.html.j2", back=choose_local_path(request.query.get("back", "/")), refused=False, wait=0
    )


async def log_in(request: web.Request) -> web.StreamResponse:
    """POST /login: fields `secret` and `back`.  A login gets a new session."""
    form, desk = request[FORM], get_desk(request)
    client = find_client_address(request, desk.config.review.proxies)
    back = choose_local_path(form.get("back", "/"))
    wait = desk.login_limit.wait_seconds(client)
    holder = match_token(desk.moderators(), form.get("secret", "")) if desk.needs_login and not wait else None
    if holder is None:
        desk.login_limit.refuse(client, wrong=not wait)
        refusal = render_page(request, "login.html.j2", 429 if wait else 403, back=back, refused=True, wait=wait)
        if wait:
            refusal.headers["Retry-After"] = str(wait)
        return refusal
    desk.login_limit.accept(client)
    response = web.Response(status=303, headers={"Location": back})
    session = renew_session(request, response)
    set_cookie(request, response, LOGIN_COOKIE, moderators.sign_login(desk.keys, session, holder), LOGIN_SECONDS)
    return response


async def log_out(request: web.Request) -> web.StreamResponse:
    """POST /logout: ends the login, and forgets the name."""
    moderators.log_out(get_desk(request).keys, request[SESSION])
    response = web.Response(status=303, headers={"Location": "/login"})
    renew_session(request, response)
    for name in (LOGIN_COOKIE, NAME_COOKIE):
        response.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=is_over_tls(request))
    return response


def renew_session(request: web.Request, response: web.StreamResponse) -> str:
    """Give the browser a new session, in place of one that an attacker may have given it (session fixation)."""
    request[SESSION] = moderators.make_session()
    set_cookie(request, response, SESSION_COOKIE, request[SESSION])
    return request[SESSION]


async def ask_name(request: web.Request) -> web.Response:
    """GET /name?back=ADDRESS."""
    _refuse_typed_names(request)
    return render_page(request, "name.html.j2", back=choose_local_path(request.query.get("back", "/")), refused=False)


async def save_name(request: web.Request) -> web.StreamResponse:
    """POST /name: fields `name` and `back`."""
    _refuse_typed_names(request)
    form = request[FORM]
    name, back = clean_name(form.get("name", "")), choose_local_path(form.get("back", "/"))
    if not name:
        return render_page(request, "name.html.j2", 400, back=back, refused=True)
    response = web.Response(status=303, headers={"Location": back})
    set_cookie(request, response, NAME_COOKIE, quote(name), NAME_SECONDS)
    return response


def _refuse_typed_names(request: web.Request) -> None:
    if get_desk(request).has_moderators:
        raise web.HTTPNotFound(reason=translate_later("Your name is that of your token"))
