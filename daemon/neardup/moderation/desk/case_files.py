"""The case file of a story, as a page and as PDF, for downloading."""

import asyncio
from functools import partial

from aiohttp import web

from neardup.moderation.case_file.content import case_file, case_record
from neardup.moderation.case_file.render import check_pdf, render_html, render_pdf
from neardup.moderation.desk.access import require_moderator
from neardup.moderation.desk.desk import desk_of
from neardup.moderation.desk.story import story_of
from neardup.moderation.desk.texts import load_text
from neardup.moderation.interface import CURRENT, ENGLISH, marked


async def show(request: web.Request) -> web.Response:
    """GET /story/ID/file."""
    return _download(request, (await _page(request)).encode(), "html", "text/html")


async def show_pdf(request: web.Request) -> web.Response:
    """GET /story/ID/file.pdf."""
    check_pdf()
    pdf = await asyncio.to_thread(render_pdf, await _page(request))
    return _download(request, pdf, "pdf", "application/pdf")


async def _page(request: web.Request) -> str:
    require_moderator(request)
    CURRENT.set(ENGLISH)  # a case file is a document: it does not depend on who downloads it
    desk = desk_of(request)
    record = await desk.ledger.read(case_record, story_of(request))
    if record is None:
        raise web.HTTPNotFound(reason=marked("This story is not in the ledger"))
    case = await case_file(record, desk.config, partial(load_text, desk))
    return await asyncio.to_thread(render_html, case, desk.config.registry)


def _download(request: web.Request, content: bytes, ending: str, content_type: str) -> web.Response:
    """A file to keep: its styles are its own, which the policy of the desk's pages forbids."""
    name = f"case-{story_of(request)}.{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Type": content_type}
    return web.Response(body=content, headers=headers)
