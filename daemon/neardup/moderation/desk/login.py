"""Logging in with a token, if the desk needs one, and entering a name where moderators have no tokens of their own."""

from aiohttp import web

from neardup.config.address import is_loopback
from neardup.moderation.desk import sessions
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.sessions import LOGIN_COOKIE, LOGIN_SECONDS, SESSION_COOKIE, is_over_tls, set_cookie
from neardup.moderation.desk.user_input import NAME_COOKIE, clean_name, local_path, set_name_cookie
from neardup.moderation.interface import marked
from neardup.token_file import find


async def ask_login(request: web.Request) -> web.Response:
    """GET /login?back=ADDRESS."""
    return page(request, "login.html.j2", back=local_path(request.query.get("back", "/")), refused=False, wait=0)


async def log_in(request: web.Request) -> web.StreamResponse:
    """POST /login: fields `secret` and `back`.  A login gets a new session."""
    form, desk, client = request[FORM], desk_of(request), client_address(request)
    back = local_path(form.get("back", "/"))
    wait = desk.login_limit.wait_seconds(client)
    holder = find(desk.moderators(), form.get("secret", "")) if desk.needs_login and not wait else None
    if holder is None:
        desk.login_limit.refuse(client, wrong=not wait)
        refusal = page(request, "login.html.j2", 429 if wait else 403, back=back, refused=True, wait=wait)
        if wait:
            refusal.headers["Retry-After"] = str(wait)
        return refusal
    desk.login_limit.accept(client)
    response = web.Response(status=303, headers={"Location": back})
    session = renew_session(request, response)
    set_cookie(request, response, LOGIN_COOKIE, sessions.login(desk.keys, session, holder), LOGIN_SECONDS)
    return response


async def log_out(request: web.Request) -> web.StreamResponse:
    """POST /logout: ends the login, and forgets the name."""
    sessions.log_out(desk_of(request).keys, request[SESSION])
    response = web.Response(status=303, headers={"Location": "/login"})
    renew_session(request, response)
    for name in (LOGIN_COOKIE, NAME_COOKIE):
        response.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=is_over_tls(request))
    return response


def renew_session(request: web.Request, response: web.StreamResponse) -> str:
    """Give the browser a new session, in place of one that an attacker may have given it (session fixation)."""
    request[SESSION] = sessions.new_session()
    set_cookie(request, response, SESSION_COOKIE, request[SESSION])
    return request[SESSION]


def client_address(request: web.Request) -> str:
    """The address of the browser: that of the peer, or what a proxy on this machine appended to X-Forwarded-For."""
    peer = request.remote or ""
    forwarded = request.headers.getall("X-Forwarded-For", [])
    return forwarded[-1].rpartition(",")[2].strip() if forwarded and is_loopback(peer) else peer


async def ask_name(request: web.Request) -> web.Response:
    """GET /name?back=ADDRESS."""
    _refuse_typed_names(request)
    return page(request, "name.html.j2", back=local_path(request.query.get("back", "/")), refused=False)


async def save_name(request: web.Request) -> web.StreamResponse:
    """POST /name: fields `name` and `back`."""
    _refuse_typed_names(request)
    form = request[FORM]
    name, back = clean_name(form.get("name", "")), local_path(form.get("back", "/"))
    if not name:
        return page(request, "name.html.j2", 400, back=back, refused=True)
    response = web.Response(status=303, headers={"Location": back})
    set_name_cookie(request, response, name)
    return response


def _refuse_typed_names(request: web.Request) -> None:
    if desk_of(request).has_moderators:
        raise web.HTTPNotFound(reason=marked("Your name is that of your token"))
