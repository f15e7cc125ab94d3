"""What every page of the desk needs: the moderator who asks, the language of the interface, and the rendering.

A moderator has logged in, or has entered a name at a desk without moderators.  The interface speaks English, and the
language of each catalogue in `translations`: a moderator chooses one by a link in the header, and until then the
browser's preferences decide.  The templates escape every value, and reject undefined names.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from aiohttp import web
from jinja2 import ChoiceLoader, Environment, PackageLoader

from neardup.config.sections import Review
from neardup.core.languages import Languages
from neardup.http.requests import Handler
from neardup.moderation.desk import moderators
from neardup.moderation.desk.addresses import (
    format_meaning_query,
    make_author_url,
    make_case_url,
    make_pair_url,
    make_story_url,
)
from neardup.moderation.desk.moderators import (
    LOGIN_COOKIE,
    MAX_NOTE_LENGTH,
    NAME_COOKIE,
    OFFERED,
    Moderator,
    choose_local_path,
    clean_name,
    clean_note,
)
from neardup.moderation.desk.parts import FORM, SESSION, get_desk
from neardup.moderation.interface import CURRENT, ENGLISH, Interface, gettext, number, translate_later
from neardup.moderation.templating import hash_for_csp, make_environment, make_font_rules, read_static

LANGUAGE_COOKIE = "neardup_language"
LANGUAGE_SECONDS = 365 * 86_400
MAX_TITLE_LENGTH = 160  # characters
PROGRAM_PATHS = {"/healthz", "/metrics"}
# The zero-width joiner and the viramas, which join the letters around them.
JOINING_CHARACTERS = "\u200d\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0d4d"


def find_login(request: web.Request) -> Moderator | None:
    """Who has logged in from this browser; None too where the desk needs no login."""
    desk = get_desk(request)
    session = request.get(SESSION)
    if session is None or not desk.needs_login:
        return None
    return moderators.find_login(desk.keys, session, request.cookies.get(LOGIN_COOKIE, ""), desk.moderators())


class SendAgain(Exception):
    """A form is not taken: what `render_send_again` is to say of it."""

    def __init__(self, status: int, title: str, message: str, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(status, title, message, labels)


def find_moderator(request: web.Request) -> Moderator | None:
    """The moderator who sends a request; None if the desk does not know."""
    if get_desk(request).has_moderators:
        return find_login(request)
    name = clean_name(unquote(request.cookies.get(NAME_COOKIE, "")))
    return Moderator(name) if name else None


def require_moderator(request: web.Request) -> Moderator:
    """The moderator.  Raises HTTPSeeOther, to the page that asks for the name, if it is not known."""
    moderator = find_moderator(request)
    if moderator is None:
        raise web.HTTPSeeOther(f"/name?back={quote(request.path_qs if request.method == 'GET' else '/')}")
    return moderator


def require_sender(request: web.Request) -> Moderator:
    """The moderator who sends a form.  Raises SendAgain if the desk does not know who that is any more."""
    moderator = find_moderator(request)
    if moderator is None:
        message = translate_later(
            "The desk no longer knows your name. Enter it at /name in another tab, then send this again."
        )
        raise SendAgain(403, translate_later("Who are you?"), message)
    return moderator


def read_note(text: str) -> str:
    """The note of a form as it is stored.  Raises SendAgain for one that is too long."""
    note = clean_note(text)
    if len(note) > MAX_NOTE_LENGTH:
        limit = gettext("The limit is %(n)s characters.", n=number(MAX_NOTE_LENGTH))
        raise SendAgain(400, translate_later("The note is too long"), limit)
    return note


def set_cookie(
    request: web.Request, response: web.StreamResponse, name: str, value: str, seconds: int | None = None
) -> None:
    """Set a cookie that scripts cannot read, requests from other sites do not carry, and only TLS carries if it can."""
    response.set_cookie(
        name, value, max_age=seconds, httponly=True, samesite="Strict", path="/", secure=is_over_tls(request)
    )


def is_over_tls(request: web.Request) -> bool:
    """Whether the browser reached the desk, or the proxy before it, over TLS.

    The headers are believed from everyone: who forges them only makes the own cookies stricter.
    """
    schemes = request.scheme, request.headers.get("X-Forwarded-Proto", ""), request.headers.get("Origin", "")
    return any(scheme.partition(",")[0].partition(":")[0].strip().lower() == "https" for scheme in schemes)


@cache
def list_interfaces() -> Mapping[str, Interface]:
    """The languages by their codes, English first; English alone without the extra `translations`."""
    try:
        from neardup.moderation.catalogue import list_translations  # noqa: PLC0415 - its library is optional
    except ImportError:
        return {ENGLISH.code: ENGLISH}
    return {ENGLISH.code: ENGLISH} | {interface.code: interface for interface in list_translations()}


def is_for_programs(request: web.Request) -> bool:
    """Whether a program asks: the JSON API, /healthz and /metrics have no cookies, no forms, and English alone."""
    return request.path.startswith("/api/") or request.path in PROGRAM_PATHS


@web.middleware
async def choose_interface(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in the language of the moderator's cookie, or else of the browser's preferences; the API is English."""
    if is_for_programs(request):
        CURRENT.set(ENGLISH)
        return await handler(request)
    chosen = list_interfaces().get(request.cookies.get(LANGUAGE_COOKIE, ""))
    CURRENT.set(chosen or choose_preferred_interface(request.headers.get("Accept-Language", "")))
    return await handler(request)


def choose_preferred_interface(accepted: str) -> Interface:
    """The language that an Accept-Language header (RFC 9110) prefers among those of the interface, else English."""
    weighted = []
    for n, entry in enumerate(accepted.split(",")):
        tag, _, quality = entry.partition(";q=")
        try:
            weighted.append((-float(quality or 1), n, tag.strip().lower()))
        except ValueError:
            continue
    languages = (tag.partition("-")[0] for weight, _, tag in sorted(weighted) if weight)
    return next((list_interfaces()[code] for code in languages if code in list_interfaces()), ENGLISH)


async def save_language(request: web.Request) -> web.StreamResponse:
    """GET /language/CODE?back=ADDRESS: keep the language in a cookie."""
    code = request.match_info["code"]
    if code not in list_interfaces():
        raise web.HTTPNotFound
    response = web.Response(status=303, headers={"Location": choose_local_path(request.query.get("back", "/"))})
    set_cookie(request, response, LANGUAGE_COOKIE, code, LANGUAGE_SECONDS)
    return response


@cache
def _open_templates(languages: Languages) -> Environment:
    loaders = [PackageLoader("neardup.moderation.desk"), PackageLoader("neardup.moderation")]
    made = make_environment(languages).overlay(loader=ChoiceLoader(loaders))
    made.filters = made.filters | {"short": short}
    made.globals = made.globals | {
        "offered": OFFERED,
        "query_of": format_meaning_query,
        "author_url": make_author_url,
        "case_url": make_case_url,
        "pair_url": make_pair_url,
        "story_url": make_story_url,
        "interfaces": list_interfaces,
        "static_url": partial(make_static_url, languages),
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


@cache
def make_static_url(languages: Languages, name: str) -> str:
    """The address of a style sheet, script or picture, which changes with its content: browsers keep what it names."""
    content = make_font_rules(languages) if name == "fonts.css" else read_static(name)
    return f"/static/{name}?{quote(hash_for_csp(content)[:12], safe='')}"


def render_page(request: web.Request, template: str, status: int = 200, **values: Any) -> web.Response:
    """The response with a rendered template, and with what its forms and its header need."""
    session, moderator = request.get(SESSION), find_moderator(request)
    text = (
        _open_templates(get_desk(request).config.registry)
        .get_template(template)
        .render(
            token=moderators.make_form_token(get_desk(request).keys, session) if session else "",
            moderator=moderator.name if moderator else "",
            has_moderators=get_desk(request).has_moderators,
            can_log_out=find_login(request) is not None,
            has_second_reviews=get_desk(request).config.review.second_reviews > 0,
            saved_notes=_list_saved_notes(get_desk(request).config.review),
            address_here=request.path_qs if request.method == "GET" else "/",
            **values,
        )
    )
    return web.Response(text=text, content_type="text/html", status=status)


def _list_saved_notes(section: Review) -> Sequence[str]:
    """The saved notes in the language of the interface, or else in English."""
    return section.notes.get(CURRENT.get().code, section.notes.get(ENGLISH.code, ()))


def render_error_page(request: web.Request, status: int, message: str) -> web.Response:
    return render_page(
        request, "error.html.j2", status, title=gettext(HTTPStatus(status).phrase), message=gettext(message)
    )


def render_send_again(
    request: web.Request, status: int, title: str, message: str, labels: Mapping[str, str] = MappingProxyType({})
) -> web.Response:
    """A page that says why a form was rejected and keeps its input; `render_error_page` if there was no form.

    The fields that have one of `labels`, and the note, can be changed there.
    """
    form = request.get(FORM)
    if form is None:
        return render_error_page(request, status, message)
    fields = {name: value for name, value in form.items() if name not in ("token", "note", "secret")}
    return render_page(
        request,
        "send_again.html.j2",
        status,
        title=gettext(title),
        message=gettext(message),
        action=request.path,
        fields=fields,
        labels=labels,
        note=form.get("note"),
    )
