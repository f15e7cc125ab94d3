"""The languages of the desk's interface: English, and one for each catalogue of messages in `translations`.

A moderator chooses one by a link in the header; until then the browser's preferences decide.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cache, partial
from gettext import GNUTranslations
from importlib.resources import files
from io import BytesIO

from aiohttp import web
from babel import Locale, negotiate_locale
from babel.dates import format_datetime, format_skeleton
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from neardup.moderation.desk.api_problems import is_of_api
from neardup.moderation.desk.sessions import set_cookie
from neardup.moderation.desk.user_input import local_path
from neardup.moderation.interface import CURRENT, ENGLISH, Interface

LANGUAGE_COOKIE = "neardup_language"
LANGUAGE_SECONDS = 365 * 86_400
TRANSLATIONS = files("neardup.moderation") / "translations"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@cache
def interfaces() -> Mapping[str, Interface]:
    """The languages by their codes, English first."""
    found = sorted(file.name for file in TRANSLATIONS.iterdir() if file.name.endswith(".po"))
    return {ENGLISH.code: ENGLISH} | {one.code: one for one in map(_interface, found)}


def _interface(name: str) -> Interface:
    locale = Locale.parse(name.removesuffix(".po"))
    compiled = BytesIO()
    with (TRANSLATIONS / name).open("rb") as file:
        write_mo(compiled, read_po(file, locale))
    compiled.seek(0)
    return Interface(
        locale.language,
        locale.get_display_name() or locale.language,
        "rtl" if locale.text_direction == "rtl" else "ltr",
        GNUTranslations(compiled),
        partial(format_decimal, locale=locale),
        partial(_time, locale),
        lambda day: format_skeleton("MMMd", day, locale=locale),
        locale.languages.get,
    )


def _time(locale: Locale, time: str | None) -> str:
    if time is None:
        return ""
    return f"{format_datetime(datetime.fromisoformat(time), 'd MMMM y, HH:mm', locale=locale)} UTC"


@web.middleware
async def choose_interface(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer in the language of the moderator's cookie, or else of the browser's preferences; the API is English."""
    if is_of_api(request):
        CURRENT.set(ENGLISH)
        return await handler(request)
    chosen = interfaces().get(request.cookies.get(LANGUAGE_COOKIE, ""))
    CURRENT.set(chosen or preferred(request.headers.get("Accept-Language", "")))
    return await handler(request)


def preferred(accepted: str) -> Interface:
    """The language that an Accept-Language header (RFC 9110) prefers among those of the interface, else English."""
    weighted = []
    for n, one in enumerate(accepted.split(",")):
        tag, _, quality = one.partition(";q=")
        try:
            weighted.append((-float(quality or 1), n, tag.strip().lower()))
        except ValueError:
            continue
    tags = [tag for weight, _, tag in sorted(weighted) if weight and tag]
    return interfaces()[negotiate_locale(tags, list(interfaces()), sep="-") or ENGLISH.code]


async def choose(request: web.Request) -> web.StreamResponse:
    """GET /language/CODE?back=ADDRESS: keep the language in a cookie."""
    code = request.match_info["code"]
    if code not in interfaces():
        raise web.HTTPNotFound
    response = web.Response(status=303, headers={"Location": local_path(request.query.get("back", "/"))})
    set_cookie(request, response, LANGUAGE_COOKIE, code, LANGUAGE_SECONDS)
    return response
