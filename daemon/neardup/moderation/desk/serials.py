"""The page of two serials that match: a dot plot of their chapters, over which one enters the page of a pair.

The copied chapters run across, those of the source down.  The plot is an SVG image made here, without a script; the
pairs that are aligned stand in a table below it.
"""

from aiohttp import web

from neardup.ledger import serials
from neardup.moderation.desk.pages import page, require_moderator
from neardup.moderation.desk.pair import pair_of
from neardup.moderation.desk.parts import desk_of
from neardup.moderation.interface import translate_later
from neardup.moderation.wording import describe_serial_match


async def show(request: web.Request) -> web.Response:
    """GET /serials/A/B: the serials of two chapters that share text."""
    require_moderator(request)
    await desk_of(request).ledger.refresh_cases()
    match = await desk_of(request).ledger.read(serials.read_match_of_pair, *pair_of(request))
    if match is None:
        raise web.HTTPNotFound(reason=translate_later("These two stories are no chapters of serials that match"))
    return page(
        request,
        "serials.html.j2",
        match=match,
        headline=describe_serial_match(match),
        across=(min(dot.copy for dot in match.dots), max(dot.copy for dot in match.dots)),
        down=(min(dot.source for dot in match.dots), max(dot.source for dot in match.dots)),
    )
