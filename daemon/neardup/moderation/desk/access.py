"""Who sends a request: a moderator who logged in, or one who has entered a name at a desk without moderators."""

from urllib.parse import quote, unquote

from aiohttp import web

from neardup.moderation.desk import sessions
from neardup.moderation.desk.desk import SESSION, desk_of
from neardup.moderation.desk.moderators import Moderator
from neardup.moderation.desk.sessions import LOGIN_COOKIE
from neardup.moderation.desk.user_input import NAME_COOKIE, clean_name


def login_of(request: web.Request) -> Moderator | None:
    """Who has logged in from this browser; None too where the desk needs no login."""
    desk = desk_of(request)
    session = request.get(SESSION)
    if session is None or not desk.needs_login:
        return None
    return sessions.login_of(desk.keys, session, request.cookies.get(LOGIN_COOKIE, ""), desk.moderators())


def moderator_of(request: web.Request) -> Moderator | None:
    """The moderator who sends a request; None if the desk does not know."""
    if desk_of(request).has_moderators:
        return login_of(request)
    name = clean_name(unquote(request.cookies.get(NAME_COOKIE, "")))
    return Moderator(name) if name else None


def require_moderator(request: web.Request) -> Moderator:
    """The moderator.  Raises HTTPSeeOther, to the page that asks for the name, if it is not known."""
    moderator = moderator_of(request)
    if moderator is None:
        raise web.HTTPSeeOther(f"/name?back={quote(request.path_qs if request.method == 'GET' else '/')}")
    return moderator
