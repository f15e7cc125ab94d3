"""The desk's pages: Jinja templates, every value escaped, a name that is not there an error."""

import unicodedata
from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader

from neardup.moderation.desk import sessions
from neardup.moderation.desk.decision import NAMES
from neardup.moderation.desk.desk import FORM, SESSION, desk_of
from neardup.moderation.desk.query import query_of
from neardup.moderation.desk.user_input import moderator_name
from neardup.moderation.templating import environment
from neardup.timestamps import rfc3339

MAX_TITLE_LENGTH = 160  # characters
JOINING_CHARACTERS = (
    "\u200d\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0d4d"  # a joiner, and the viramas, which join letters
)


@cache
def _templates() -> Environment:
    loaders = [PackageLoader("neardup.moderation.desk"), PackageLoader("neardup.moderation")]
    made = environment().overlay(loader=ChoiceLoader(loaders))
    made.filters = made.filters | {"rfc3339": rfc3339, "short": short}
    made.globals = made.globals | {"names": NAMES, "query_of": query_of}
    return made


def short(title: str) -> str:
    """A title that fits on a few lines, not cut within what a reader sees as one character."""
    if len(title) <= MAX_TITLE_LENGTH:
        return title
    end = MAX_TITLE_LENGTH
    while end > MAX_TITLE_LENGTH // 2 and (
        unicodedata.category(title[end])[0] in "MC" or title[end - 1] in JOINING_CHARACTERS
    ):
        end -= 1
    return f"{title[:end]}…"


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A template as the answer; its forms get their token, and its head the moderator's name."""
    session = request.get(SESSION)
    text = (
        _templates()
        .get_template(template)
        .render(
            token=sessions.form_token(desk_of(request).keys, session) if session else "",
            moderator=moderator_name(request),
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def error_page(request: web.Request, status: int, said: str) -> web.Response:
    """A page that says what is wrong."""
    return page(request, "error.html.j2", status, title=HTTPStatus(status).phrase, said=said)


def send_again_page(request: web.Request, status: int, title: str, said: str) -> web.Response:
    """A page that says why a form was rejected and keeps its input for another try; `error_page` if no form."""
    form = request.get(FORM)
    if form is None:
        return error_page(request, status, said)
    kept = {name: value for name, value in form.items() if name not in ("token", "note", "secret")}
    return page(
        request,
        "send_again.html.j2",
        status,
        title=title,
        said=said,
        action=request.path,
        kept=kept,
        note=form.get("note"),
    )
