"""The languages of the desk's interface: English, and one for each catalogue of messages in `translations`.

A moderator chooses one by a link in the header; until then the browser's preferences decide.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache

from aiohttp import web

from neardup.moderation.desk.api_problems import is_of_api
from neardup.moderation.desk.sessions import set_cookie
from neardup.moderation.desk.user_input import local_path
from neardup.moderation.interface import CURRENT, ENGLISH, Interface

LANGUAGE_COOKIE = "neardup_language"
LANGUAGE_SECONDS = 365 * 86_400
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@cache
def interfaces() -> Mapping[str, Interface]:
    """The languages by their codes, English first; English alone without the extra `translations`."""
    try:
        from neardup.moderation.desk.translated import translated
    except ImportError:
        return {ENGLISH.code: ENGLISH}
    return {ENGLISH.code: ENGLISH} | {one.code: one for one in translated()}


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
    languages = (tag.partition("-")[0] for weight, _, tag in sorted(weighted) if weight)
    return next((interfaces()[one] for one in languages if one in interfaces()), ENGLISH)


async def choose(request: web.Request) -> web.StreamResponse:
    """GET /language/CODE?back=ADDRESS: keep the language in a cookie."""
    code = request.match_info["code"]
    if code not in interfaces():
        raise web.HTTPNotFound
    response = web.Response(status=303, headers={"Location": local_path(request.query.get("back", "/"))})
    set_cookie(request, response, LANGUAGE_COOKIE, code, LANGUAGE_SECONDS)
    return response
