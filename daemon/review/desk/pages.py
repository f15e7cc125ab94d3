"""The desk's pages: Jinja templates, every value escaped, a name that is not there an error."""

from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from daemon.review.desk import sessions
from daemon.review.desk.desk import FORM, SESSION, desk_of
from daemon.review.desk.typed import moderator


@cache
def _templates() -> Environment:
    return Environment(
        loader=ChoiceLoader([PackageLoader("daemon.review.desk"), PackageLoader("daemon.review")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """A template as the answer; its forms get their token, and its head the moderator's name."""
    session = request.get(SESSION)
    text = (
        _templates()
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
