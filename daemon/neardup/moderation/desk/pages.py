"""The desk's pages: Jinja templates, every value escaped, a name that is not there an error."""

import unicodedata
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader

from neardup.languages import Languages
from neardup.moderation.desk import sessions
from neardup.moderation.desk.decided import NAMES
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.query import query_of
from neardup.moderation.desk.typed import moderator
from neardup.moderation.templating import environment
from neardup.timestamps import rfc3339

MOST_IN_TITLE = 160  # characters
JOINING = "\u200d\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0d4d"  # a joiner, and the viramas, which join letters


@cache
def _templates(languages: Languages) -> Environment:
    loaders = [PackageLoader("neardup.moderation.desk"), PackageLoader("neardup.moderation")]
    made = environment(languages).overlay(loader=ChoiceLoader(loaders))
    made.filters = made.filters | {"rfc3339": rfc3339, "short": short}
    made.globals = made.globals | {"names": NAMES, "query_of": query_of}
    return made


def short(title: str) -> str:
    """A title that fits on a few lines, not cut within what a reader sees as one character."""
    if len(title) <= MOST_IN_TITLE:
        return title
    end = MOST_IN_TITLE
    while end > MOST_IN_TITLE // 2 and (unicodedata.category(title[end])[0] in "MC" or title[end - 1] in JOINING):
        end -= 1
    return f"{title[:end]}…"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A template as the answer; its forms get their token, and its head the moderator's name."""
    session = request.get(SESSION)
    text = (
        _templates(desk_of(request).config.registry)
        .get_template(template)
        .render(
            token=sessions.form_token(desk_of(request).keys, session) if session else "",
            moderator=moderator(request),
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def sorry(request: web.Request, status: int, said: str) -> web.Response:
    """A page that says what is wrong."""
    return page(request, "sorry.html.j2", status, title=HTTPStatus(status).phrase, said=said)


def send_again(request: web.Request, status: int, title: str, said: str) -> web.Response:
    """A page that says why a form did not get through, and holds what was typed into it; `sorry` for other requests."""
    form = request.get(FORM)
    if form is None:
        return sorry(request, status, said)
    kept = {name: value for name, value in form.items() if name not in ("token", "note", "secret")}
    return page(
        request, "again.html.j2", status, title=title, said=said, action=request.path, kept=kept, note=form.get("note")
    )
