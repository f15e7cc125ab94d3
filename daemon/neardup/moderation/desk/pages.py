"""The desk's pages, rendered from Jinja templates that escape every value and reject undefined names."""

import unicodedata
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader

from neardup.languages import Languages
from neardup.moderation.desk import sessions
from neardup.moderation.desk.access import login_of, moderator_of
from neardup.moderation.desk.decision import OFFERED
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.interfaces import interfaces
from neardup.moderation.desk.query import query_of
from neardup.moderation.interface import gettext
from neardup.moderation.templating import environment
from neardup.records import rfc3339

MAX_TITLE_LENGTH = 160  # characters
# The zero-width joiner and the viramas, which join the letters around them.
JOINING_CHARACTERS = "\u200d\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0d4d"


@cache
def _templates(languages: Languages) -> Environment:
    loaders = [PackageLoader("neardup.moderation.desk"), PackageLoader("neardup.moderation")]
    made = environment(languages).overlay(loader=ChoiceLoader(loaders))
    made.filters = made.filters | {"rfc3339": rfc3339, "short": short}
    made.globals = made.globals | {
        "offered": OFFERED,
        "query_of": query_of,
        "author_url": author_url,
        "interfaces": interfaces,
    }
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


def author_url(author_id: str) -> str:
    """The address of an author's page."""
    return f"/author/{quote(author_id, safe='')}"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """The response with a rendered template, and with what its forms and its header need."""
    session, moderator = request.get(SESSION), moderator_of(request)
    text = (
        _templates(desk_of(request).config.registry)
        .get_template(template)
        .render(
            token=sessions.form_token(desk_of(request).keys, session) if session else "",
            moderator=moderator.name if moderator else "",
            has_moderators=desk_of(request).has_moderators,
            can_log_out=login_of(request) is not None,
            address_here=request.path_qs if request.method == "GET" else "/",
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def error_page(request: web.Request, status: int, message: str) -> web.Response:
    """A page with an error message."""
    return page(request, "error.html.j2", status, title=gettext(HTTPStatus(status).phrase), message=gettext(message))


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
        title=gettext(title),
        message=gettext(message),
        action=request.path,
        fields=fields,
        note=form.get("note"),
    )
