"""The page of two serials that match: a dot plot of their chapters, over which one enters the page of a pair.

The copied chapters run across, those of the source down.  The plot is an SVG image made here, without a script; the
pairs that are aligned stand in a table below it.
"""

import sqlite3
from collections.abc import Mapping

from aiohttp import web

from neardup.ledger import names, serials
from neardup.ledger.serials import SerialMatch
from neardup.moderation.desk.addresses import Pair, read_pair
from neardup.moderation.desk.pages import render_page, require_moderator
from neardup.moderation.desk.parts import get_desk
from neardup.moderation.interface import translate_later
from neardup.moderation.wording import describe_serial_match
from neardup.records import ShownId


async def show(request: web.Request) -> web.Response:
    """GET /serials/A/B: the serials of two chapters that share text."""
    require_moderator(request)
    await get_desk(request).ledger.refresh_cases()
    match, shown = await get_desk(request).ledger.read(_read_match, read_pair(request))
    if match is None:
        raise web.HTTPNotFound(reason=translate_later("These two stories are no chapters of serials that match"))
    return render_page(
        request,
        "serials.html.j2",
        match=match,
        shown=shown,
        headline=describe_serial_match(match),
        across=(min(dot.copy for dot in match.dots), max(dot.copy for dot in match.dots)),
        down=(min(dot.source for dot in match.dots), max(dot.source for dot in match.dots)),
    )


def _read_match(db: sqlite3.Connection, pair: Pair) -> tuple[SerialMatch | None, Mapping[int, ShownId]]:
    """The serials of a pair, and the ids of their chapters as they are shown."""
    match = serials.read_match_of_pair(db, *pair)
    dots = match.dots if match else ()
    return match, names.read_shown_ids(db, {story for dot in dots for story in (dot.source_id, dot.copy_id)})
