"""Logging in with the token, if the desk needs one, and entering the moderator's name."""

from urllib.parse import quote

import structlog
from aiohttp import web

from neardup.moderation.desk import sessions
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.pages import page
from neardup.moderation.desk.sessions import LOGIN_COOKIE, LOGIN_SECONDS, set_cookie
from neardup.moderation.desk.user_input import clean_name, local_path, moderator_name, set_name_cookie

log = structlog.get_logger()


async def ask_login(request: web.Request) -> web.Response:
    """GET /login?back=ADDRESS."""
    return page(request, "login.html.j2", back=local_path(request.query.get("back", "/")), refused=False)


async def log_in(request: web.Request) -> web.StreamResponse:
    """POST /login: fields `secret` and `back`."""
    form, keys = request[FORM], desk_of(request).keys
    back = local_path(form.get("back", "/"))
    if desk_of(request).is_local_only or not keys.is_token(form.get("secret", "")):
        log.warning("a login was refused", remote=request.remote)
        return page(request, "login.html.j2", 403, back=back, refused=True)
    response = web.Response(status=303, headers={"Location": back})
    set_cookie(response, LOGIN_COOKIE, sessions.login(keys, request[SESSION]), LOGIN_SECONDS)
    return response


async def ask_name(request: web.Request) -> web.Response:
    """GET /name?back=ADDRESS."""
    return page(request, "name.html.j2", back=local_path(request.query.get("back", "/")), refused=False)


async def save_name(request: web.Request) -> web.StreamResponse:
    """POST /name: fields `name` and `back`."""
    form = request[FORM]
    name, back = clean_name(form.get("name", "")), local_path(form.get("back", "/"))
    if not name:
        return page(request, "name.html.j2", 400, back=back, refused=True)
    response = web.Response(status=303, headers={"Location": back})
    set_name_cookie(response, name)
    return response


def require_name(request: web.Request) -> str:
    """The moderator's name.  Raises HTTPSeeOther, to the page that asks for it, if it is not known."""
    name = moderator_name(request)
    if not name:
        raise web.HTTPSeeOther(f"/name?back={quote(request.path_qs if request.method == 'GET' else '/')}")
    return name
