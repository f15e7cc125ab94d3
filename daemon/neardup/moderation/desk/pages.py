"""The desk's pages, rendered from Jinja templates that escape every value and reject undefined names."""

import unicodedata
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader

from neardup.languages import Languages
from neardup.moderation.desk import sessions
from neardup.moderation.desk.decision import NAMES
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.query import query_of
from neardup.moderation.desk.sessions import LOGIN_COOKIE
from neardup.moderation.desk.user_input import moderator_name
from neardup.moderation.export.pairs import earlier_of
from neardup.moderation.templating import environment
from neardup.timestamps import rfc3339

MAX_TITLE_LENGTH = 160  # characters
# The zero-width joiner and the viramas, which join the letters around them.
JOINING_CHARACTERS = "\u200d\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0d4d"


@cache
def _templates(languages: Languages) -> Environment:
    loaders = [PackageLoader("neardup.moderation.desk"), PackageLoader("neardup.moderation")]
    made = environment(languages).overlay(loader=ChoiceLoader(loaders))
    made.filters = made.filters | {"rfc3339": rfc3339, "short": short, "first_published": first_published}
    made.globals = made.globals | {"names": NAMES, "query_of": query_of}
    return made


def short(title: str) -> str:
    """A title shortened to a few lines, without cutting inside a grapheme cluster."""
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    end = MAX_TITLE_LENGTH
    while end > MAX_TITLE_LENGTH // 2 and (
        unicodedata.category(title[end])[0] in "MC" or title[end - 1] in JOINING_CHARACTERS
    ):
        end -= 1
    return f"{title[:end]}…"


def first_published(row: Mapping[str, Any]) -> str:
    """Which story of a flag (a row of the view `pairs`) was published first, in words."""
    earlier = earlier_of(row)
    return "order of publication not known" if earlier is None else f"{earlier} was published first"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """The response with a rendered template; `token` and `moderator` are set for its forms and header."""
    session = request.get(SESSION)
    text = (
        _templates(desk_of(request).config.registry)
        .get_template(template)
        .render(
            token=sessions.form_token(desk_of(request).keys, session) if session else "",
            moderator=moderator_name(request),
            can_log_out=session is not None and is_logged_in(request, session),
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def is_logged_in(request: web.Request, session: str) -> bool:
    """Whether the browser has logged in with the token, which a desk on this machine only does not ask for."""
    desk = desk_of(request)
    return not desk.is_local_only and sessions.is_login(desk.keys, session, request.cookies.get(LOGIN_COOKIE, ""))


def error_page(request: web.Request, status: int, message: str) -> web.Response:
    """A page with an error message."""
    return page(request, "error.html.j2", status, title=HTTPStatus(status).phrase, message=message)


def send_again_page(request: web.Request, status: int, title: str, message: str) -> web.Response:
    """A page that says why a form was rejected and keeps its input; `error_page` if there was no form."""
    form = request.get(FORM)
    if form is None:
        return error_page(request, status, message)
    fields = {name: value for name, value in form.items() if name not in ("token", "note", "secret")}
    return page(
        request,
        "send_again.html.j2",
        status,
        title=title,
        message=message,
        action=request.path,
        fields=fields,
        note=form.get("note"),
    )
